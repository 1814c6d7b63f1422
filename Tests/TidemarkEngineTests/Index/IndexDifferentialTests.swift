import Testing

@testable import TidemarkEngine

/// Random work on an index and on a model, compared all along.
struct IndexDifferentialTests {
  @Test(
    "an index answers like a dictionary whatever is written, frozen and merged",
    arguments: 0..<10)
  func differential(_ seed: Int) throws {
    var run = try IndexRun(seed: UInt64(seed))
    for _ in 0..<150 { try run.step() }
    try run.compareAll()
  }
}
