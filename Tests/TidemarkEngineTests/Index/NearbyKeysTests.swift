import Testing

@testable import TidemarkEngine

/// Look-ups of many keys in a run of which nothing was read yet.
struct NearbyKeysTests {
  private static let count = 40_000

  /// A run that has just been opened, of every other key.
  private func makeRun() throws -> (index: Index, run: SortedRun) {
    let run = try SampleRun.open(count: Self.count)
    return (Index(runs: RunList([run]), seed: SampleRun.seed), run)
  }

  private func page(_ numbers: [Int]) -> (keys: KeyPage, all: [[UInt8]]) {
    var keys = KeyPage()
    let all = numbers.map(SampleRun.key)
    for key in all { keys.append(key.rawSpan, Slot(sequence: 0, labelSet: 0, size: .deleted)) }
    return (keys, all)
  }

  @Test("ascending keys are found where they lie, without the table of hashes")
  func ascending() throws {
    for step in [1, 3, 40, 401] {
      let (index, run) = try makeRun()
      let numbers = Array(stride(from: 0, to: 2 * Self.count, by: step))
      let (keys, all) = page(numbers)
      var nearby = NearbyKeys(index.runs)
      let slots = try nearby.slots(of: keys, all.map { index.hash($0.rawSpan) })
      for (number, slot) in zip(numbers, slots) {
        #expect(slot?.sequence == (number % 2 == 0 ? UInt64(number + 1) : nil))
      }
      let read = run.memoryBytes
      let (other, byHash) = try makeRun()
      for key in all { _ = try other.isNewest(1, of: key.rawSpan, hash: other.hash(key.rawSpan)) }
      #expect(read < byHash.memoryBytes)
    }
  }

  @Test("keys outside the run and in any order are found or not, as by their hashes")
  func others() throws {
    let (index, _) = try makeRun()
    var nearby = NearbyKeys(index.runs)
    let all: [[UInt8]] = [
      [0], SampleRun.key(10), SampleRun.key(8), SampleRun.key(8), SampleRun.key(9),
      [UInt8]("key/".utf8),
      SampleRun.key(79_998), [UInt8](repeating: 255, count: 300), SampleRun.key(0), [255], [0],
    ]
    let wanted: [UInt64?] = [nil, 11, 9, 9, nil, nil, 79_999, nil, 1, nil, nil]
    for size in 1...all.count {
      var found: [UInt64?] = []
      for first in stride(from: 0, to: all.count, by: size) {
        var keys = KeyPage()
        let part = all[first..<min(first + size, all.count)]
        for key in part {
          keys.append(key.rawSpan, Slot(sequence: 0, labelSet: 0, size: .deleted))
        }
        let slots = try nearby.slots(of: keys, part.map { index.hash($0.rawSpan) })
        found += slots.map { $0?.sequence }
      }
      #expect(found == wanted, "\(size) at a time")
    }
  }
}
