// SPDX-License-Identifier: Apache-2.0
// Random frames, sound and broken, and what they mean by the rules of bpf/parse.h and bpf/options.h
// (without tunnels and super-packets), read byte by byte and not as the hardware does it.
#pragma once

#include "bench.h"

using Frame = std::vector<uint8_t>;

struct Parsed {
    u32 reason = 15; // enum pass_reason; 15: TCP
    bool is_ip = false, is_v6 = false;
    u32 ip = 0, tcp = 0; // offsets
    u32 payload = 0, scale = 0, scale_at = 0;
    bool has_scale = false, is_authenticated = false;
    u16 offset_flags = 0, window = 0, checksum = 0;
};

inline u16 word(const Frame &f, size_t at) { return f[at] << 8 | f[at + 1]; }
inline void set_word(Frame &f, size_t at, u16 value) {
    f[at] = value >> 8;
    f[at + 1] = value;
}

inline void parse_options(const Frame &f, u32 at, u32 length, Parsed &found) {
    u32 i = 0;
    while (i < length && f[at + i] != 0) {
        u32 kind = f[at + i];
        if (kind == 1) {
            i++;
            continue;
        }
        u32 bytes = i + 1 < length ? f[at + i + 1] : 0;
        if (bytes < 2 || i + bytes > length)
            return;
        if (kind == 3 && bytes == 3) {
            found.has_scale = true;
            found.scale = f[at + i + 2];
            found.scale_at = 20 + i + 2;
        }
        found.is_authenticated |= kind == 19 || kind == 29;
        i += bytes;
    }
}

inline u32 parse_tcp(const Frame &f, u32 at, int64_t left, Parsed &found) {
    if (at > 1024 || at + 20 > f.size())
        return PASS_TRUNCATED;
    found.tcp = at;
    found.offset_flags = word(f, at + 12);
    found.window = word(f, at + 14);
    found.checksum = word(f, at + 16);
    u32 header = (found.offset_flags >> 12) * 4;
    if (header < 20 || header > left)
        return PASS_MALFORMED;
    found.payload = left - header;
    parse_options(f, at + 20, header - 20, found);
    return 15;
}

inline u32 parse_v4(const Frame &f, u32 at, Parsed &found) {
    if (at + 20 > f.size())
        return PASS_TRUNCATED;
    u32 header = (f[at] & 15) * 4, total = word(f, at + 2);
    if (f[at] >> 4 != 4 || header < 20 || total < header)
        return PASS_MALFORMED;
    found.is_ip = true;
    if (at + total > f.size())
        return PASS_TRUNCATED;
    if (word(f, at + 6) & 0x3fff)
        return PASS_FRAGMENT;
    return f[at + 9] != 6 ? PASS_NOT_TCP : parse_tcp(f, at + header, total - header, found);
}

inline u32 parse_v6(const Frame &f, u32 at, Parsed &found) {
    if (at + 40 > f.size())
        return PASS_TRUNCATED;
    u32 start = at + 40, protocol = f[at + 6], payload = word(f, at + 4), i;
    found.is_v6 = true;
    if (f[at] >> 4 != 6)
        return PASS_MALFORMED;
    found.is_ip = true;
    if (start + payload > f.size())
        return PASS_TRUNCATED;
    at = start;
    for (i = 0; i < 4 && protocol != 6; i++) {
        if (protocol == 44)
            return PASS_FRAGMENT;
        if (protocol != 0 && protocol != 43 && protocol != 60)
            return PASS_NOT_TCP;
        if (at > 1024 || at + 4 > f.size())
            return PASS_TRUNCATED;
        if (protocol == 43 && f[at + 3])
            return PASS_TOO_DEEP;
        protocol = f[at];
        at += (f[at + 1] + 1) * 8;
    }
    if (protocol != 6)
        return protocol == 17 ? PASS_NOT_TCP : PASS_TOO_DEEP;
    if (at - start > payload)
        return PASS_MALFORMED;
    return parse_tcp(f, at, payload - (at - start), found);
}

inline Parsed parse(const Frame &f) {
    Parsed found;
    u32 at = 12, tags = 0;
    found.reason = PASS_TRUNCATED;
    while (at + 2 <= f.size()) {
        u16 type = word(f, at);
        at += 2;
        found.ip = at;
        if (type == 0x0800) {
            found.reason = parse_v4(f, at, found);
            return found;
        }
        if (type == 0x86dd) {
            found.reason = parse_v6(f, at, found);
            return found;
        }
        if (type != 0x8100 && type != 0x88a8) {
            found.reason = PASS_NOT_IP;
            return found;
        }
        if (tags++ == 2) {
            found.reason = PASS_TOO_DEEP;
            return found;
        }
        at += 2;
    }
    return found;
}

inline u32 sum_words(const Frame &f, size_t from, size_t to, u32 total = 0) {
    for (size_t i = from; i < to; i += 2)
        total += f[i] << 8 | (i + 1 < to ? f[i + 1] : 0);
    while (total >> 16)
        total = (total & 0xffff) + (total >> 16);
    return total;
}

// A list of TCP options, most of them sound.
inline Frame options(Random &r) {
    Frame list;
    int count = r.below(5);
    for (int i = 0; i < count; i++)
        switch (r.below(8)) {
        case 0: list.insert(list.end(), {2, 4, (u8)r.next(), (u8)r.next()}); break;
        case 1:
        case 2: list.insert(list.end(), {3, 3, (u8)(r.chance(80) ? r.below(16) : 240 + r.below(16))}); break;
        case 3: list.push_back(1); break;
        case 4: list.insert(list.end(), {1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8}); break;
        case 5: list.insert(list.end(), {4, 2}); break;
        case 6: {
            u8 bytes = r.chance(80) ? 2 + r.below(12) : r.next();
            list.insert(list.end(), {r.pick<u8>({19, 29, 2, 3, 5}), bytes});
            list.insert(list.end(), bytes < 40 && bytes > 2 ? bytes - 2 : 0, (u8)r.next());
            break;
        }
        default: list.push_back(r.chance(30) ? 0 : 1);
        }
    list.resize(std::min<size_t>(list.size(), 40));
    while (list.size() % 4)
        list.push_back(r.chance(90) ? r.below(2) : r.next());
    return list;
}

// Packets of the datapath's fuzzer; the Makefile has them printed.
inline const std::vector<Frame> &fuzzed() {
    static const std::vector<Frame> packets = [] {
        std::ifstream file(FUZZED, std::ios::binary);
        std::vector<Frame> all;
        uint8_t size[2];
        while (file.read((char *)size, 2)) {
            all.emplace_back(size[0] | size[1] << 8);
            file.read((char *)all.back().data(), all.back().size());
        }
        if (all.empty())
            fprintf(stderr, "%s: no packets\n", FUZZED), exit(1);
        return all;
    }();
    return packets;
}

// Most are sound TCP over IPv4 or IPv6; some are cut, have a wrong byte, are something else, or are
// the fuzzer's.
inline Frame any_frame(Random &r, u32 max_payload) {
    if (r.chance(25))
        return fuzzed()[r.below(fuzzed().size())];
    Frame f, list = options(r);
    u32 payload = r.chance(40) ? 0 : r.below(max_payload), tags = r.chance(70) ? 0 : r.below(4);
    bool is_v6 = r.chance(35);
    u8 flags = r.pick<u8>({0x10, 0x10, 0x10, 0x18, 0x02, 0x12, 0x12, 0x11, 0x14, 0x16, (u8)r.next()});
    auto put = [&](u32 value) { f.push_back(value >> 8), f.push_back(value); };

    for (int i = 0; i < 6; i++)
        put(r.next());
    for (u32 i = 0; i < tags; i++)
        put(r.pick<u16>({0x8100, 0x88a8})), put(r.next());
    u32 tcp_bytes = 20 + list.size(), ip;
    if (!is_v6) {
        u32 ihl = r.chance(80) ? 5 : 5 + r.below(11);
        put(0x0800);
        ip = f.size();
        put((0x40 | ihl) << 8 | r.below(256)), put(ihl * 4 + tcp_bytes + payload);
        put(r.next()), put(r.chance(95) ? 0x4000 : r.next());
        put(0x4000 | (r.chance(95) ? 6 : r.below(256))), put(0);
        for (u32 i = 10; i < ihl * 2; i++)
            put(r.next());
        set_word(f, ip + 10, ~sum_words(f, ip, f.size()));
    } else {
        Frame extensions;
        u32 count = r.chance(60) ? 0 : r.below(6);
        u8 first = 6, *next = &first;
        put(0x86dd);
        ip = f.size();
        std::vector<u32> at;
        std::vector<u8> kinds;
        for (u32 i = 0; i < count; i++) {
            u32 units = r.chance(90) ? r.below(4) : r.below(80);
            kinds.push_back(r.pick<u8>({0, 43, 60, 60, (u8)(r.chance(10) ? 44 : 0)}));
            at.push_back(extensions.size());
            extensions.push_back(6);
            extensions.push_back(units);
            for (u32 k = 2; k < 8 + units * 8; k++)
                extensions.push_back(k == 3 && r.chance(90) ? 0 : r.next());
        }
        u8 last = r.chance(95) ? 6 : r.pick<u8>({17, 58, 44, 50});
        for (u32 i = 0; i < count; i++)
            extensions[at[i]] = i + 1 < count ? kinds[i + 1] : last;
        *next = count ? kinds[0] : last;
        put(0x6000 | r.below(4096)), put(r.next());
        put(extensions.size() + tcp_bytes + payload), put(first << 8 | 64);
        for (int i = 0; i < 16; i++)
            put(r.next());
        f.insert(f.end(), extensions.begin(), extensions.end());
    }
    u32 tcp = f.size();
    for (int i = 0; i < 6; i++)
        put(r.next());
    put((tcp_bytes / 4) << 12 | (r.chance(70) ? r.below(16) << 8 : 0) | flags);
    put(r.pick<u16>({0, 1, 64, 2000, 65535, (u16)r.next()})), put(0), put(0);
    f.insert(f.end(), list.begin(), list.end());
    for (u32 i = 0; i < payload; i++)
        f.push_back(r.next());
    set_word(f, tcp + 16, ~sum_words(f, tcp, f.size()));
    if (f.size() < 60 && r.chance(80))
        f.resize(60); // Ethernet's padding
    if (r.chance(6))
        f[r.below(std::min<size_t>(f.size(), ip + 60))] = r.next();
    if (r.chance(6))
        f.resize(14 + r.below(f.size() - 14));
    return f;
}

// The words of a frame on a stream of WIDTH bits.
#ifndef WIDTH
#define WIDTH 64
#endif

template <class T> void put_bytes(T &signal, const uint8_t *bytes, u32 count) {
    memset(&signal, 0, sizeof(signal));
    memcpy(&signal, bytes, count); // little-endian, as Verilator's words are
}

template <class T> void get_bytes(const T &signal, uint8_t *bytes, u32 count) {
    memcpy(bytes, &signal, count);
}

constexpr u32 WORD_BYTES = WIDTH / 8;
