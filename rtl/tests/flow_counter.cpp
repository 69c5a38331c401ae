// SPDX-License-Identifier: Apache-2.0
// core/flow_counter.h: golden vectors; then two packets per clock, idle times and resets. Whether
// the count expires is known some clocks after the time, so time stands still before that.
#include "Vflow_counter.h"
#include "bench.h"

int main(int argc, char **argv) {
    Clocked<Vflow_counter> b;
    Random r(8);
    flow_counter counter{};
    int cases = argc > 1 ? atoi(argv[1]) : 20, number = 0;
    auto &d = b.block;

    auto settle = [&] {
        d.in_valid = d.out_valid = d.expire = 0;
        for (int i = 0; i < 4; i++)
            b.tick();
    };
    b.reset();
    for (const Line &line : argc > 2 ? Vectors::read(argv[2]) : std::vector<Line>()) {
        std::string where = "flow_counter.jsonl:" + std::to_string(++number);
        d.in_valid = d.out_valid = d.expire = 0;
        if (line.is_case) {
            b.reset();
            continue;
        }
        d.now_ns = line.at("args.now_ns");
        if (line.kind == "packet") {
            bool is_out = line.at("args.is_out");
            (is_out ? d.out_valid : d.in_valid) = 1;
            (is_out ? d.out_flags : d.in_flags) = line.at("args.flags");
            (is_out ? d.out_has_payload : d.in_has_payload) = line.at("args.payload") > 0;
        } else {
            d.idle_ns = line.at("args.idle_ns");
            settle();
            d.expire = 1;
        }
        b.tick();
        check(d.flows, line.at("result"), "flows", where);
    }
    b.reset();
    uint64_t now = 0;
    for (int i = 0; i < 20000 * cases; i++) {
        bool expires = r.chance(10);
        now += r.any(r.chance(1) ? 31 : 10);
        d.now_ns = now;
        if (expires) {
            d.idle_ns = 1 + r.any(20);
            settle();
        }
        d.in_valid = r.chance(60);
        d.in_flags = r.next();
        d.in_has_payload = r.chance(30);
        d.out_valid = r.chance(60);
        d.out_flags = r.next();
        d.out_has_payload = r.chance(30);
        d.expire = expires;
        if (d.in_valid)
            flow_counter_on_packet(&counter, d.in_flags, d.in_has_payload, 0, now);
        if (d.out_valid)
            flow_counter_on_packet(&counter, d.out_flags, d.out_has_payload, 1, now);
        if (d.expire)
            flow_counter_expire(&counter, now, d.idle_ns);
        b.tick();
        check(d.flows, counter.flows, "flows", "random");
        if (r.chance(1) && r.chance(10)) {
            b.reset();
            counter = {};
        }
    }
    return finish("flow_counter", b.clocks);
}
