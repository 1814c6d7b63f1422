/// A table of byte strings in a sorted run: labels, or sets of labels. They
/// are numbered in the order of their ids, which may have gaps. See ``RunLayout``.
struct RunStrings {
  let run: SortedRun
  private let offsets: RunLayout.Section
  private let content: RunLayout.Section
  private let hash: RunLayout.Section

  static func labels(_ run: SortedRun) -> RunStrings {
    RunStrings(run: run, offsets: .labelOffsets, content: .labelBytes, hash: .labelHash)
  }

  static func sets(_ run: SortedRun) -> RunStrings {
    RunStrings(run: run, offsets: .setOffsets, content: .setBytes, hash: .setHash)
  }

  var count: Int { run.header[offsets].count }

  /// The length of the longest label or set of labels.
  static let longest = max(Limits.labelBytes, 4 * Limits.labelsPerEntry)

  /// Calls `body` with the string of an id; nil if the sorted run does not have the id.
  func withString<R>(
    _ id: UInt32, _ body: (RawSpan) throws(IndexError) -> R
  ) throws(IndexError) -> R? {
    guard let number = try number(ofID: id) else { return nil }
    return try withString(at: number, body)
  }

  /// The id of a string; nil if the sorted run does not have the string.
  /// - Parameter seed: the sorted run's hash seed.
  func find(_ string: RawSpan, seed: UInt64) throws(IndexError) -> UInt32? {
    let capacity = run.header[hash].count
    guard capacity > 0 else { return nil }
    var position = Int(truncatingIfNeeded: KeyHash.hash(string, seed: seed)) & (capacity - 1)
    // The bound ends the search in a damaged table that has no empty place.
    for _ in 0..<capacity {
      let bytes = try run.bytes(hash, 4 * position, 4)
      guard let entry = try? bytes.u32(at: 0), entry <= count else {
        throw run.damage(hash, 4 * position)
      }
      if entry == 0 { return nil }
      let isEqual = try withString(at: Int(entry) - 1) { (other) throws(IndexError) in
        other.isEqual(to: string)
      }
      if isEqual { return try id(at: Int(entry) - 1) }
      position = (position + 1) & (capacity - 1)
    }
    return nil
  }

  /// The number of the string with an id.
  private func number(ofID id: UInt32) throws(IndexError) -> Int? {
    guard count > 0 else { return nil }
    // Mostly no id is missing: the search begins where the string then is.
    let first = try self.id(at: 0)
    guard id >= first else { return nil }
    var low = 0
    var high = count
    var middle = Int(id - first)
    if middle >= high { middle = high - 1 }
    while low < high {
      let found = try self.id(at: middle)
      if found == id { return middle }
      if found < id { low = middle + 1 } else { high = middle }
      middle = (low + high) / 2
    }
    return nil
  }

  private func id(at number: Int) throws(IndexError) -> UInt32 {
    let place = number * RunLayout.stringBytes
    let row = try run.bytes(offsets, place, 4)
    guard let id = try? row.u32(at: 0) else { throw run.damage(offsets, place) }
    return id
  }

  @inline(__always)
  private func withString<R>(
    at number: Int, _ body: (RawSpan) throws(IndexError) -> R
  ) throws(IndexError) -> R {
    let place = number * RunLayout.stringBytes
    let ends = try run.bytes(offsets, place, 2 * RunLayout.stringBytes)
    let start = SortedRun.offset(ends, 4)
    let end = SortedRun.offset(ends, RunLayout.stringBytes + 4)
    guard start < end, end - start <= Self.longest else { throw run.damage(offsets, place) }
    return try body(try run.bytes(content, start, end - start))
  }
}
