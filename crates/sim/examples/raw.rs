use penstock_sim::{fabric::*, network::Buffer, simulation::*, units::*, rng::Rng, tcp::Config};
fn main() {
  let c = |g: u64, us: u64| Cable { rate: Rate(g*1_000_000_000), delay: Time::from_micros(us) };
  let b = Buffer::Bytes(125_000_00);
  let which = std::env::args().nth(1).unwrap();
  let (f, flows, ms): (Fabric, Vec<(u32,u32)>, u64) = match which.as_str() {
    "A" => (Fabric::dumbbell(80,80,c(1,12),b,c(1,25),b), (0..80).map(|i|(i,80+i)).collect(), 5000),
    "C" => (Fabric::leaf_spine(3,2,48,c(1,5),c(10,5),b), (0..144).map(|i|(i,(i+48)%144)).collect(), 1000),
    _ => { let mut r = Rng::new(3,3); (Fabric::fat_tree(16,c(10,1),c(10,1),b), (0..10000).map(|i|{ let s=i%1024; let mut d = r.below(1024) as u32; if d==s { d=(d+1)%1024 }; (s,d)}).collect(), 20) }
  };
  let plan = Plan { traffic: 0, config: 0, request_bytes: None, reconnects: false, think: Time::ZERO };
  let mut sim = Simulation::new(&f, vec![Config], vec![plan], 1);
  sim.network.start();
  for (i,(s,d)) in flows.iter().enumerate() { let c = sim.add_client(0, i as u32, Transfer{source:*s,destination:*d,bytes:ENDLESS},1); sim.at(Time::from_nanos(i as u64*1000), Action::Begin(c)); }
  let t = std::time::Instant::now();
  sim.run_until(Time::from_millis(ms));
  let w = t.elapsed().as_secs_f64();
  let h = sim.network.packet_hops();
  println!("{which}: {h} hops {:.2} s {:.1} M/s {:.1} ns", w, h as f64/w/1e6, w*1e9/h as f64);
}
