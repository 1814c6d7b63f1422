/// Gives byte strings ids: over the tables of the runs, those of the deltas.
///
/// Each layer knows the strings of all ids that it names, so that a layer can be written, merged
/// and dropped without a look at the others. An id is never given to another string.
///
/// A class, since look-ups should not copy it.
final class StringInterner {
  /// The strings that the active delta names.
  private(set) var active: InternedStrings
  /// The strings that the frozen delta names, while there is one.
  private(set) var frozen: InternedStrings?
  /// Newest first.
  private(set) var runs: [ImageStrings]
  /// Ids that were never given out begin here.
  private(set) var nextID: UInt32
  private let seed: UInt64

  /// - Parameters:
  ///   - runs: newest first.
  ///   - nextID: the first that may be given out.
  init(_ runs: [ImageStrings], nextID: UInt32, seed: UInt64) {
    self.seed = seed
    self.runs = runs
    self.nextID = nextID
    active = InternedStrings(seed: seed)
  }

  /// The strings that a merge may ask for.
  /// - Parameter count: so many of the newest runs are merged.
  func mergeInput(_ count: Int) -> StringInterner {
    let input = StringInterner(Array(runs.prefix(count)), nextID: nextID, seed: seed)
    input.frozen = frozen
    return input
  }

  /// Freezes what the active delta names, and begins anew.
  func freeze() {
    frozen = active
    active = InternedStrings(seed: seed)
  }

  /// Goes over to other runs, which know what the frozen delta named.
  /// - Returns: what is to be freed.
  func publish(_ runs: [ImageStrings]) -> InternedStrings? {
    self.runs = runs
    defer { frozen = nil }
    return frozen
  }

  var memoryBytes: Int { active.memoryBytes + (frozen?.memoryBytes ?? 0) }

  /// The id of a string that is not empty.
  func find(_ content: RawSpan) throws(IndexError) -> UInt32? {
    if let id = active.find(content) { return id }
    if let id = frozen?.find(content) { return id }
    for run in runs {
      if let id = try run.find(content, seed: seed) { return id }
    }
    return nil
  }

  /// The id of a string that is not empty, a new one if it has none; the active delta may name it.
  func intern(_ content: RawSpan) throws(IndexError) -> UInt32 {
    if let id = active.find(content) { return id }
    var id = try find(content)
    if id == nil {
      guard nextID < UInt32.max - 1 else { throw IndexError.limitExceeded }
      id = nextID
      nextID += 1
    }
    guard let id else { throw IndexError.limitExceeded }
    active.insert(content, id: id)
    return id
  }

  /// Whether the active delta may name an id.
  @inline(__always)
  func isActive(_ id: UInt32) -> Bool { active.contains(id) }

  /// Lets the active delta name an id that another layer names.
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
    for run in runs {
      if let result = try run.withString(id, body) { return result }
    }
    throw IndexError.imageInvalid(FormatError("id of no label or set"))
  }

  func string(_ id: UInt32) throws(IndexError) -> [UInt8] {
    try withString(id) { (bytes) throws(IndexError) in [UInt8](copying: bytes) }
  }
}
