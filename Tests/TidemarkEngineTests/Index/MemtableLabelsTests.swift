import Testing

@testable import TidemarkEngine

/// Labels of keys that no run has yet.
@Suite("Labels of keys that were just written")
struct MemtableLabelsTests {
  /// More than wait for their lists at a time, and no whole multiple.
  private static let count = 70_001
  private static let labels = 7

  private static func key(_ number: Int) -> [UInt8] { bytes("key/\(1_000_000 + number)") }

  private static func name(_ label: Int) -> [UInt8] { bytes("label \(label)") }

  private func filled(from start: Int, to end: Int, _ index: Index) throws {
    for number in start..<end {
      let key = Self.key(number)
      let set = try index.labelTable.intern(Self.name(number % Self.labels).rawSpan)
      try index.upsert(
        key.rawSpan, hash: index.hash(key.rawSpan),
        Slot(sequence: UInt64(number + 1), labelSet: set, size: SizeClass(bytes: 9)))
    }
  }

  private func keys(_ label: Int, _ index: Index) throws -> [[UInt8]] {
    var page = KeyPage()
    _ = try index.page(
      matching: LabelQuery(all: [Self.name(label)]), from: .start, upTo: .end, descending: false,
      limit: 100_000, includeFormer: false, into: &page)
    return (0..<page.count).map { [UInt8](copying: page.key(at: $0)) }
  }

  private func expected(_ label: Int, _ count: Int) -> [[UInt8]] {
    stride(from: label, to: count, by: Self.labels).map(Self.key)
  }

  @Test("every label finds all of its keys, between writes and from the run made of them")
  func everyKey() throws {
    let index = Index(seed: 7)
    let half = Self.count / 2
    try filled(from: 0, to: half, index)
    #expect(try keys(3, index) == expected(3, half))
    try filled(from: half, to: Self.count, index)
    for label in 0..<Self.labels {
      #expect(try keys(label, index) == expected(label, Self.count))
    }
    let other = Index(seed: 7)
    try filled(from: 0, to: Self.count, other)
    other.freeze()
    let file = try MemoryFileSystem().open("/run", .create)
    let info = RunInfo(
      storeID: [UInt8](repeating: 1, count: 16), runID: 2, sequence: UInt64(Self.count))
    try RunWriter.write(other.mergeInput(taking: 0), to: file, info: info)
    _ = try other.publish(try SortedRun(file: file), taking: 0)
    for label in 0..<Self.labels {
      #expect(try keys(label, other) == expected(label, Self.count))
    }
  }
}
