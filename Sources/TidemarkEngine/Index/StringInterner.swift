/// Gives byte strings ids: over an image's table, those that came since.
struct StringInterner {
  private(set) var added: InternedStrings
  private(set) var nextID: UInt32 = 0
  private let seed: UInt64

  init(seed: UInt64) {
    self.seed = seed
    added = InternedStrings(seed: seed)
  }

  var memoryBytes: Int { added.memoryBytes }

  /// Keeps id 0 for the empty string, which is never looked up.
  mutating func reserveEmptyString() { nextID = max(nextID, 1) }

  /// The id of a string.
  func find(_ content: RawSpan) throws(IndexError) -> UInt32? {
    added.find(content)
  }

  /// The id of a string, a new one if it has none.
  mutating func intern(_ content: RawSpan) throws(IndexError) -> UInt32 {
    if let id = try find(content) { return id }
    guard nextID < UInt32.max - 1 else { throw IndexError.limitExceeded }
    let id = nextID
    nextID += 1
    added.insert(content, id: id)
    return id
  }

  /// Calls `body` with the string of an id.
  func withString<R>(
    _ id: UInt32, _ body: (RawSpan) throws(IndexError) -> R
  ) throws(IndexError) -> R {
    if let index = added.index(of: id) { return try body(added.content(at: index)) }
    throw IndexError.imageInvalid(FormatError("unknown id"))
  }
}
