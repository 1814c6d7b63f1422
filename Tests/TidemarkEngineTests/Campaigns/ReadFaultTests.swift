import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Maintenance on a disk that reads now and then")
struct ReadFaultTests {
  private static func script(_ seed: Int) -> Script {
    let profile = ScriptProfile.all[seed % ScriptProfile.all.count]
    return Script(seed: UInt64(seed), count: max(5, 30 / profile.cost), profile: profile)
  }

  @Test("nothing is lost without a word while 3, 10 or 30 % of reads fail", arguments: 401...408)
  func chance(seed: Int) throws {
    var report = ReadFaultSweep.Report()
    for isClosed in [true, false] {
      let sweep = try ReadFaultSweep(Self.script(seed), isClosed: isClosed)
      for work in ReadFaultSweep.Work.allCases {
        for (number, probability) in [0.03, 0.1, 0.3].enumerated() {
          let run = UInt64(seed * 10 + number)
          try sweep.run(work, .chance(probability), seed: run, &report)
        }
      }
    }
    #expect(report.injected[.error] > 0, "seed \(seed)")
  }

  @Test("two looks that each fail elsewhere are told", arguments: [1, 2, 5])
  func twoLooks(puts: Int) throws {
    var report = ReadFaultSweep.Report()
    let steps = BitSweep.sampleSteps.prefix(puts)
    let sweep = try ReadFaultSweep(Script(seed: 0, steps: Array(steps)), isClosed: false)
    for seed in 1...200 {
      try sweep.run(.verify, .chance(0.3), seed: UInt64(seed), &report)
    }
    #expect(report.whole > 0)
    #expect(report.told > 0)
  }

  @Test(
    "nothing is lost without a word when all reads fail from some read on",
    arguments: ReadFaultSweep.Work.allCases)
  func fromSomeReadOn(work: ReadFaultSweep.Work) throws {
    var report = ReadFaultSweep.Report()
    for isClosed in [true, false] {
      let sweep = try ReadFaultSweep(
        Script(seed: 0, steps: BitSweep.sampleSteps), isClosed: isClosed)
      for number in 1...40 { try sweep.run(work, .from(number), seed: 411, &report) }
    }
    #expect(report.injected[.error] > 0)
  }
}
