// SPDX-License-Identifier: Apache-2.0
// What every lockstep bench needs: core/, random numbers, golden vectors, and a check that reports.
//
// A bench runs its block and core/ on the same events and ends with 1 at the first difference. Its
// arguments: the number of random cases, and the file of golden vectors, if there is one.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#define _Bool bool
#define _Static_assert static_assert
#include "counters.h"
#include "fairq.h"
#include "flow_counter.h"
#include "hcf.h"
#include "hscc.h"
#include "segment.h"
#include "tcp_rewrite.h"

#include "params.h" // of the hardware: printed by generate.c
#include "verilated.h"

// SplitMix64: the same numbers on every machine.
struct Random {
    uint64_t state;
    explicit Random(uint64_t seed) : state(seed) {}
    uint64_t next() {
        uint64_t z = state += 0x9e3779b97f4a7c15ull;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ z >> 27) * 0x94d049bb133111ebull;
        return z ^ z >> 31;
    }
    uint64_t below(uint64_t n) { return n ? next() % n : 0; }
    bool chance(unsigned percent) { return below(100) < percent; }
    // As likely small as large.
    uint64_t any(unsigned bits) { return next() & ((1ull << (1 + below(bits))) - 1); }
    template <class T> T pick(std::initializer_list<T> list) {
        return list.begin()[below(list.size())];
    }
};

inline uint64_t checks;

inline void check(uint64_t actual, uint64_t expected, const char *what, const std::string &where) {
    checks++;
    if (actual == expected)
        return;
    fprintf(stderr, "%s: %s is %llu, core/ has %llu\n", where.c_str(), what,
            (unsigned long long)actual, (unsigned long long)expected);
    exit(1);
}

// One line of tests/vectors/*.jsonl: its numbers by path, such as "args.window", "result.0".
struct Line {
    std::string kind; // the value of "case" or "event"
    bool is_case = false;
    std::map<std::string, int64_t> numbers;
    int64_t at(const std::string &path) const {
        auto found = numbers.find(path);
        if (found == numbers.end()) {
            fprintf(stderr, "%s: no %s in the golden vector\n", kind.c_str(), path.c_str());
            exit(1);
        }
        return found->second;
    }
    bool has(const std::string &path) const { return numbers.count(path) > 0; }
};

class Vectors {
  public:
    static std::vector<Line> read(const char *path) {
        std::ifstream file(path);
        std::vector<Line> lines;
        std::string text;
        if (!file) {
            fprintf(stderr, "%s: cannot be read\n", path);
            exit(1);
        }
        while (std::getline(file, text)) {
            Vectors parser{text};
            lines.emplace_back();
            parser.value(lines.back(), "");
        }
        return lines;
    }

  private:
    explicit Vectors(const std::string &text) : text(text) {}
    const std::string &text;
    size_t at = 0;

    std::string string() {
        size_t end = text.find('"', ++at);
        std::string found = text.substr(at, end - at);
        at = end + 1;
        return found;
    }
    void value(Line &line, const std::string &path) {
        char c = text[at];
        if (c == '{' || c == '[') {
            at++;
            for (int i = 0; text[at] != '}' && text[at] != ']'; i++) {
                std::string key = std::to_string(i);
                if (c == '{') {
                    key = string();
                    at++; // the colon
                }
                value(line, path.empty() ? key : path + "." + key);
                at += text[at] == ',';
            }
            at++;
        } else if (c == '"') {
            line.kind = string();
            line.is_case = path == "case";
        } else if (text.compare(at, 4, "null") == 0) {
            at += 4;
        } else {
            char *end;
            line.numbers[path] = strtoll(&text[at], &end, 10);
            at = end - text.c_str();
        }
    }
};

// Clock and reset of a block.
template <class Block> struct Clocked {
    Block block;
    uint64_t clocks = 0;
    void tick() {
        block.clk = 0;
        block.eval();
        block.clk = 1;
        block.eval();
        clocks++;
    }
    void reset() {
        block.rst = 1;
        tick();
        block.rst = 0;
    }
};

inline int finish(const char *name, uint64_t clocks) {
    printf("%-16s %10llu checks, %llu clocks\n", name, (unsigned long long)checks,
           (unsigned long long)clocks);
    return 0;
}
