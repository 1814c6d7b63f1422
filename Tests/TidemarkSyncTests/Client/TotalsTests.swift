import Testing

@testable import TidemarkSync

@Suite("The counts of a session")
struct TotalsTests {
  @Test("totals are added and taken away count by count, and none is left out")
  func counts() {
    typealias Totals = SyncTotals
    #expect(MemoryLayout<Totals>.size == Totals.counts.count * MemoryLayout<Int>.size)
    var (first, second, sum) = (Totals(), Totals(), Totals())
    for (index, count) in Totals.counts.enumerated() {
      first[keyPath: count] = 100 + index
      second[keyPath: count] = index * index
      sum[keyPath: count] = 100 + index + index * index
    }
    #expect(first + second == sum && sum - second == first)
  }
}
