import Testing
import TidemarkTestKit

@Suite("Parts of the engine that are timed one by one")
struct UnitBenchmarkTests {
  @Test(
    "every part runs at any size and gives the same each time",
    arguments: UnitBenchmark.allCases)
  func runs(unit: UnitBenchmark) throws {
    for items in [1, 3, 2_500] {
      let work = try unit.prepare(items: items)
      #expect(work.operations > 0)
      let first = try work.run()
      #expect(try work.run() == first)
    }
  }
}
