import Testing
import TidemarkEngine
import TidemarkTestKit

@Suite("Counters and traces")
struct TraceTests {
  /// A run whose every step is up to chance.
  private func run(seed: UInt64, plan: FaultPlan = .none) -> SimulatedFileSystem {
    let disk = SimulatedFileSystem(seed: seed)
    disk.plan = plan
    let random = SeededRandom(seed: seed)
    for name in ["a", "b", "c"] { try? disk.open(name, .create).close() }
    for _ in 0..<300 {
      guard let file = try? disk.open(random.pick(["a", "b", "c"]) ?? "a", .readWrite) else {
        disk.restart()
        continue
      }
      _ = try? file.put(random.bytes(random.int(in: 1...2000)), at: random.int(below: 9000))
      _ = try? file.get(random.int(in: 1...900), at: random.int(below: 5000))
      if random.chance(0.3) { try? file.sync() }
      file.close()
    }
    return disk
  }

  private let storm: FaultPlan = [
    FaultRule(.powerCut, .chance(0.01), calls: .mutating),
    FaultRule(.error(.EIO), .chance(0.02)),
    FaultRule(.shortTransfer, .chance(0.1)),
    FaultRule(.bitFlipOnWrite, .chance(0.02)),
    FaultRule(.syncLeavesPagesClean, .chance(0.1)),
    FaultRule(.syncRevertsPages, .chance(0.1)),
    FaultRule(.misdirectedWrite, .chance(0.02)),
  ]

  @Test("the same seed gives the same trace and the same disk, faults and all")
  func repeats() {
    for seed in 0..<5 as Range<UInt64> {
      let first = run(seed: seed, plan: storm)
      let second = run(seed: seed, plan: storm)
      #expect(first.traceHash == second.traceHash, "seed \(seed)")
      #expect(first.injected == second.injected, "seed \(seed)")
      for path in ["a", "b", "c"] {
        #expect(first.contents(of: path) == second.contents(of: path), "seed \(seed)")
      }
      #expect(first.injected[.powerCut] > 0)
    }
  }

  @Test("another seed gives another trace, and so does one other byte")
  func differs() throws {
    #expect(Set((0..<20).map { run(seed: $0).traceHash }).count == 20)
    let one = SimulatedFileSystem()
    let two = SimulatedFileSystem()
    try one.open("a", .create).put([UInt8](repeating: 1, count: 100))
    try two.open("a", .create).put([UInt8](repeating: 1, count: 99) + [2])
    #expect(one.traceHash != two.traceHash)
  }

  @Test("calls are counted, those that can change the disk apart")
  func counts() throws {
    let disk = SimulatedFileSystem()
    let file = try disk.open("a", .create)
    try file.put([1])
    _ = try file.get(1)
    _ = try file.length()
    try file.sync()
    _ = try disk.kind("a")
    _ = try disk.open("a", .read)
    #expect(disk.calls == 7)
    #expect(disk.mutatingCalls == 3)
    #expect(disk.calls(of: .open) == 2)
    #expect(disk.calls(of: .write) == 1)
    #expect(disk.calls(of: .remove) == 0)
  }

  @Test("a trace tells each call in a line")
  func trace() throws {
    let disk = SimulatedFileSystem()
    disk.keepsTrace = true
    let file = try disk.open("a", .create)
    try file.put([1, 2], at: 7)
    try file.truncate(to: 5)
    try file.sync()
    #expect(
      disk.trace.map(\.description) == ["open a", "write a 7+2", "truncate a 5", "sync a"])
  }

  @Test("counts of several runs add up")
  func sums() {
    let a = run(seed: 1, plan: storm).injected
    let b = run(seed: 2, plan: storm).injected
    #expect((a + b)[.error] == a[.error] + b[.error])
    #expect((a + b).total == a.total + b.total)
    #expect(a.description.contains("error \(a[.error])"))
    #expect(a.missing(of: [.error, .lostWrite]) == [.lostWrite])
  }

  @Test("many threads may use one disk, and none of their bytes is lost")
  func threads() async throws {
    let disk = SimulatedFileSystem()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<8 as Range<UInt8> {
        group.addTask {
          let file = try disk.open("f\(task)", .create)
          for round in 0..<200 { try file.put([task], at: round) }
          try file.sync()
        }
      }
      try await group.waitForAll()
    }
    for task in 0..<8 as Range<UInt8> {
      #expect(disk.contents(of: "f\(task)") == [UInt8](repeating: task, count: 200))
    }
    #expect(disk.calls == 8 * 202)
  }
}
