import Testing
import TidemarkTestKit

@Suite("Two versions of a program over one store")
struct VersionSweepTests {
  @Test(
    "updates by an older schema move no unknown field, and queries report unreadable objects",
    arguments: 1...40)
  func sweep(seed: Int) throws {
    var sweep = VersionSweep(seed: UInt64(seed))
    let report = try sweep.run()
    #expect(report.statesChecked > 0, "seed \(seed)")
  }

  @Test("updates by an older schema keep the fields that it does not know, nested ones too")
  func random() throws {
    let seed = UInt64.random(in: 0 ... .max)
    print("seed \(seed)")
    var sweep = VersionSweep(seed: seed)
    _ = try sweep.run()
  }
}
