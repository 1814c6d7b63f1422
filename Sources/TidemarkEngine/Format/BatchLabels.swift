/// The sets of labels of a batch's puts, in flat memory: a set costs no allocation. The batch owns
/// it; its operations name a set by index. Most batches repeat a few sets of one label.
struct BatchLabels: Sendable {
  /// A set of labels, sorted and without repetition.
  struct LabelSet: Sendable {
    fileprivate var first: Int
    fileprivate(set) var count: Int
    /// Bytes that it takes in a frame, at most.
    fileprivate(set) var storedBytes: Int
  }

  private(set) var sets: [LabelSet] = []
  /// The labels of all sets, one behind the other, and where each ends.
  private var bytes: [UInt8] = []
  private var ends: [Int] = []
  /// The last added set of one label, by the low bits of the label's hash; -1 for none.
  private var recent: [Int32] = []

  private static let recentCount = 256
  /// With fewer sets `recent` is not made, and a label is compared with the last set only.
  private static let recentFromSets = 2

  /// Bytes that all sets take in a frame, at most.
  var storedBytes: Int { bytes.count + 2 * ends.count + 2 * sets.count }

  /// Adds a set unless it equals the last one.
  /// - Parameter labels: sorted and without repetition.
  /// - Returns: its index.
  mutating func add(_ labels: [[UInt8]]) -> Int {
    if isLast(labels) { return sets.count - 1 }
    beginSet()
    for label in labels { append(label.rawSpan) }
    return sets.count - 1
  }

  /// Adds a set of one label, unless it was added lately.
  /// - Returns: its index.
  mutating func add(_ label: RawSpan) -> Int {
    if isSet(sets.count - 1, label) { return sets.count - 1 }
    if sets.count >= Self.recentFromSets {
      if recent.isEmpty { recent = [Int32](repeating: -1, count: Self.recentCount) }
      let place = Int(truncatingIfNeeded: KeyHash.hash(label, seed: 0)) & (Self.recentCount - 1)
      // `removeSets` leaves `recent` as it is: the index may name another set by now, or none.
      let known = Int(recent[place])
      if isSet(known, label) { return known }
      recent[place] = Int32(truncatingIfNeeded: sets.count)
    }
    beginSet()
    append(label)
    return sets.count - 1
  }

  /// Whether there is a set of this number, with this label alone.
  private func isSet(_ set: Int, _ label: RawSpan) -> Bool {
    guard set >= 0, set < sets.count, sets[set].count == 1 else { return false }
    let known = self.label(0, ofSet: set)
    return known.isEqual(to: label)
  }

  private func isLast(_ labels: [[UInt8]]) -> Bool {
    guard let last = sets.last, last.count == labels.count else { return false }
    for (number, wanted) in labels.enumerated() {
      let label = label(number, ofSet: sets.count - 1)
      if !label.isEqual(to: wanted.rawSpan) { return false }
    }
    return true
  }

  private mutating func beginSet() {
    sets.append(LabelSet(first: ends.count, count: 0, storedBytes: 2))
  }

  /// Adds a label to the last set.
  private mutating func append(_ label: RawSpan) {
    bytes.append(copying: label)
    ends.append(bytes.count)
    sets[sets.count - 1].count += 1
    sets[sets.count - 1].storedBytes += label.byteCount + 2
  }

  /// A label of a set, counted from 0.
  @_lifetime(borrow self)
  func label(_ number: Int, ofSet set: Int) -> RawSpan {
    let index = sets[set].first + number
    let start = index == 0 ? 0 : ends[index - 1]
    let end = ends[index]
    return bytes.rawSpan.extracting(start..<end)
  }

  /// Writes a set as frames have it.
  func write(_ set: Int, into writer: inout ByteWriter) {
    writer.varint(sets[set].count)
    for number in 0..<sets[set].count {
      let label = label(number, ofSet: set)
      writer.varint(label.byteCount)
      writer.raw(label)
    }
  }

  /// Removes the last sets, for operations that are taken back, and keeps their memory.
  mutating func removeSets(from count: Int) {
    guard count < sets.count else { return }
    ends.removeLast(ends.count - sets[count].first)
    bytes.removeLast(bytes.count - (ends.last ?? 0))
    sets.removeLast(sets.count - count)
  }
}
