/// Gives byte strings (labels, or encoded sets of labels) small ids, and finds either by the other.
///
/// Its layers are those of the index: the active memtable, the frozen (immutable) memtable, of
/// which a new run is made, and the sorted runs on disk. The table of a layer has the strings of
/// all ids that the layer names, so that a layer can be written, merged and dropped without a look
/// at the others. An id is never given to another string. Without a lock: the owner of the index
/// lets one caller in at a time, or look-ups beside each other.
final class StringInterner {
  /// The strings that the active memtable names.
  private(set) var active: InternedStrings
  /// The strings that the frozen memtable names, while there is one.
  private(set) var frozen: InternedStrings?
  /// The tables of the runs, newest first.
  private(set) var runs: [RunStrings]
  /// Ids from here on were never given out.
  private(set) var nextID: UInt32
  private let seed: UInt64

  /// - Parameters:
  ///   - runs: newest first.
  ///   - nextID: the first id that may be given out.
  init(_ runs: [RunStrings], nextID: UInt32, seed: UInt64) {
    self.seed = seed
    self.runs = runs
    self.nextID = nextID
    active = InternedStrings(seed: seed)
  }

  /// Copies the string tables of the runs to merge, so that a merge needs no lock of the index.
  /// - Parameter count: how many of the newest runs are merged.
  func mergeInput(_ count: Int) -> StringInterner {
    let input = StringInterner(Array(runs.prefix(count)), nextID: nextID, seed: seed)
    input.frozen = frozen
    return input
  }

  /// Makes the table of the active memtable that of the frozen one, and begins an empty one.
  func freeze() {
    frozen = active
    active = InternedStrings(seed: seed)
  }

  /// Replaces the runs. The newest was made of the frozen memtable and has all strings that it
  /// named.
  /// - Returns: the table of the frozen memtable, to be freed outside of locks.
  func publish(_ runs: [RunStrings]) -> InternedStrings? {
    self.runs = runs
    defer { frozen = nil }
    return frozen
  }

  var memoryBytes: Int { active.memoryBytes + (frozen?.memoryBytes ?? 0) }

  /// The id of a string, which is not empty; nil where no layer names it.
  func find(_ content: RawSpan) throws(IndexError) -> UInt32? {
    if let id = active.find(content) { return id }
    if let id = frozen?.find(content) { return id }
    for run in runs { if let id = try run.find(content, seed: seed) { return id } }
    return nil
  }

  /// The id of a string, which is not empty; a new id where no layer names the string. The active
  /// memtable's table gets it in any case, since the memtable may name only ids that its table has.
  func intern(_ content: RawSpan) throws(IndexError) -> UInt32 {
    if let id = active.find(content) { return id }
    let known = try find(content)
    // `UInt32.max` ends the table of a run.
    guard known != nil || nextID < UInt32.max - 1 else { throw IndexError.limitExceeded }
    let id = known ?? nextID
    if known == nil { nextID += 1 }
    active.insert(content, id: id)
    return id
  }

  /// Copies an id of another layer into the active memtable's table, so that the memtable may name
  /// it.
  func activate(_ id: UInt32) throws(IndexError) {
    guard !active.contains(id) else { return }
    let content = try string(id)
    active.insert(content.rawSpan, id: id)
  }

  /// Calls `body` with the string of an id.
  @inline(__always)
  func withString<R>(
    _ id: UInt32, _ body: (RawSpan) throws(IndexError) -> R
  ) throws(IndexError) -> R {
    if let result = try active.withString(id, body) { return result }
    if let result = try frozen?.withString(id, body) { return result }
    for run in runs { if let result = try run.withString(id, body) { return result } }
    throw IndexError.runInvalid(FormatError("id of no label or set"))
  }

  func string(_ id: UInt32) throws(IndexError) -> [UInt8] {
    try withString(id) { (bytes) throws(IndexError) in [UInt8](copying: bytes) }
  }
}
