import Testing
import TidemarkTestKit

@Suite("Two versions of a program over one store")
struct VersionSweepTests {
  @Test(
    "an older program moves no field to another element, and no list lacks objects untold",
    arguments: 1...40)
  func sweep(seed: Int) throws {
    var sweep = VersionSweep(seed: UInt64(seed))
    let report = try sweep.run()
    #expect(report.statesChecked > 0, "seed \(seed)")
  }

  @Test("an older program keeps fields in their place with a random seed, too")
  func random() throws {
    let seed = UInt64.random(in: 0 ... .max)
    print("seed \(seed)")
    var sweep = VersionSweep(seed: seed)
    _ = try sweep.run()
  }
}
