/// Interns labels and sets of labels for an ``Index``: slots and lists name them by small ids.
///
/// A merge may drop an id that no key uses any more. So an id is good only while the caller holds
/// the lock of the index's owner; whoever needs it longer keeps the labels themselves.
package final class LabelTable {
  let labels: StringInterner
  let sets: StringInterner
  /// Sets of one label, which most are: the label by set and the set by label. Only such as the
  /// active memtable has the strings of, so that these need not be interned again.
  private var labelOfSet = IDMap()
  private var setOfLabel = IDMap()
  /// The set being put together, see ``beginSet()``.
  private var idScratch: [UInt32] = []
  private var setScratch: [UInt8] = []

  /// - Parameter runs: newest first.
  init(runs: [SortedRun], seed: UInt64) {
    let newest = runs.first?.header
    labels = StringInterner(
      runs.map(RunStrings.labels), nextID: UInt32(newest?.nextLabel ?? 0), seed: seed)
    // Ids of sets begin at 1, since set 0 is in no table.
    sets = StringInterner(
      runs.map(RunStrings.sets), nextID: max(1, UInt32(newest?.nextSet ?? 1)), seed: seed)
  }

  var memoryBytes: Int {
    labels.memoryBytes + sets.memoryBytes + labelOfSet.memoryBytes + setOfLabel.memoryBytes
  }

  /// The id of a set of labels; 0 is the empty set.
  /// - Parameter labels: each of 1 to 255 bytes, at most 64; order and repetition do not matter.
  package func intern(_ labels: [[UInt8]]) throws(IndexError) -> UInt32 {
    if labels.count == 1, let label = labels.first { return try intern(label.rawSpan) }
    beginSet()
    for label in labels { try addLabel(label.rawSpan) }
    return try finishSet()
  }

  /// The id of the set of one label.
  package func intern(_ label: RawSpan) throws(IndexError) -> UInt32 {
    guard label.byteCount > 0, label.byteCount <= Limits.labelBytes else {
      throw IndexError.limitExceeded
    }
    let id = try labels.intern(label)
    if let set = setOfLabel[id] { return UInt32(set) }
    beginSet()
    try addLabel(label)
    return try finishSet()
  }

  /// Begins a set that is given label by label, in the place of one begun before.
  package func beginSet() { idScratch.removeAll(keepingCapacity: true) }

  /// Adds a label to the set begun last.
  package func addLabel(_ label: RawSpan) throws(IndexError) {
    guard label.byteCount > 0, label.byteCount <= Limits.labelBytes else {
      throw IndexError.limitExceeded
    }
    let id = try labels.intern(label)
    if !idScratch.contains(id) { idScratch.append(id) }
    if idScratch.count > Limits.labelsPerEntry { throw IndexError.limitExceeded }
  }

  /// The id of the set begun last.
  package func finishSet() throws(IndexError) -> UInt32 {
    guard let label = idScratch.first else { return 0 }
    let isSingle = idScratch.count == 1
    if isSingle, let set = setOfLabel[label] { return UInt32(set) }
    idScratch.sort()
    LabelSetCoding.encode(idScratch, into: &setScratch)
    let content = setScratch
    let set = try sets.intern(content.rawSpan)
    if isSingle {
      labelOfSet.insert(set, Int(label))
      setOfLabel.insert(label, Int(set))
    }
    return set
  }

  /// The labels of a set, in byte order.
  package func labels(ofSet set: UInt32) throws(IndexError) -> [[UInt8]] {
    var ids: [UInt32] = []
    try labelIDs(ofSet: set, into: &ids)
    var result: [[UInt8]] = []
    result.reserveCapacity(ids.count)
    for id in ids { result.append(try labels.string(id)) }
    result.sort { $0.rawSpan.compare(to: $1.rawSpan) < 0 }
    return result
  }

  /// The label ids of a set, ascending.
  package func labelIDs(ofSet set: UInt32, into ids: inout [UInt32]) throws(IndexError) {
    ids.removeAll(keepingCapacity: true)
    if set == 0 { return }
    if let label = labelOfSet[set] {
      ids.append(UInt32(label))
      return
    }
    try sets.withString(set) { (bytes) throws(IndexError) in
      try LabelSetCoding.decode(bytes, into: &ids)
    }
    // A damaged run may name an id that is not given out yet, and a later label would get it.
    guard ids.allSatisfy({ $0 < labels.nextID }) else {
      throw IndexError.runInvalid(FormatError("set of labels with an unknown label"))
    }
  }

  /// Gives the active memtable the strings of a set and its labels, which another layer may name.
  /// - Parameter ids: all labels of the set.
  func activate(_ set: UInt32, labels ids: [UInt32]) throws(IndexError) {
    guard set != 0, !sets.active.contains(set) else { return }
    for id in ids { try labels.activate(id) }
    try sets.activate(set)
  }

  /// Freezes the strings of the active memtable; the next one begins without any.
  func freeze() {
    labels.freeze()
    sets.freeze()
    labelOfSet = IDMap()
    setOfLabel = IDMap()
  }

  /// Takes the list of runs, newest first, of which the newest has the frozen memtable's strings.
  /// - Returns: the frozen strings, to be freed outside of the lock.
  func publish(_ runs: [SortedRun]) -> [InternedStrings] {
    [labels.publish(runs.map(RunStrings.labels)), sets.publish(runs.map(RunStrings.sets))]
      .compactMap(\.self)
  }
}

/// A set of labels as bytes: the label ids, ascending, four bytes each.
enum LabelSetCoding {
  static func encode(_ ids: [UInt32], into bytes: inout [UInt8]) {
    bytes.removeAll(keepingCapacity: true)
    for id in ids { bytes.append(UInt64(id), bytes: 4) }
  }

  static func decode(_ bytes: RawSpan, into ids: inout [UInt32]) throws(IndexError) {
    guard bytes.byteCount % 4 == 0, bytes.byteCount <= 4 * Limits.labelsPerEntry else {
      throw IndexError.runInvalid(FormatError("set of labels malformed"))
    }
    do throws(FormatError) {
      for offset in stride(from: 0, to: bytes.byteCount, by: 4) {
        ids.append(try bytes.u32(at: offset))
      }
    } catch { throw IndexError.runInvalid(error) }
  }
}
