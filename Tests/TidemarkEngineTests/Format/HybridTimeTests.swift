import Testing

@testable import TidemarkEngine

@Suite("Readings of the hybrid clock as points in time")
struct HybridTimeTests {
  @Test("readings of one millisecond keep their order, and the next millisecond comes after them")
  func order() {
    let first = HybridTime(1_767_225_600_123 << 16)
    let readings = [
      first, HybridTime(first.rawValue + 1), HybridTime(first.rawValue + 0xffff),
      HybridTime(first.rawValue + 0x10000),
    ]
    let times = readings.map(\.orderedTimestamp)
    #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
    #expect(
      times.map(\.milliseconds)
        == [1_767_225_600_123, 1_767_225_600_123, 1_767_225_600_123, 1_767_225_600_124])
    #expect(first.orderedTimestamp == first.timestamp)
    let last = HybridTime(.max).orderedTimestamp
    #expect(last.milliseconds == (1 << 48) - 1 && last.nanoseconds < 1_000_000_000)
  }
}
