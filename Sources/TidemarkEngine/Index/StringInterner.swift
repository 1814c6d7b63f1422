/// Gives byte strings ids: over an image's table, those that came since.
///
/// A class, since look-ups should not copy it; `copy` gives a merge one of its own.
final class StringInterner {
  /// What was interned since the image was written, or is no longer in it but still named.
  private(set) var added: InternedStrings
  private(set) var image: ImageStrings?
  /// Ids that were never given out begin here.
  private(set) var nextID: UInt32
  /// How many of the image's unused ids were given out or found taken.
  private var freeTaken = 0
  private var lowestID: UInt32 = 0
  private let seed: UInt64

  init(_ image: ImageStrings?, seed: UInt64) {
    self.seed = seed
    self.image = image
    nextID = UInt32(image?.count ?? 0)
    added = InternedStrings(seed: seed)
  }

  /// A table over a newer image that gives out no id below those given out so far.
  convenience init(_ image: ImageStrings, replacing old: StringInterner) {
    self.init(image, seed: old.seed)
    lowestID = old.lowestID
    nextID = max(nextID, old.nextID)
  }

  /// Takes a string over from the table before, unless the image has it.
  /// - Returns: whether it was taken over.
  func keep(_ id: UInt32, from old: StringInterner) throws(IndexError) -> Bool {
    if let image, id < image.count {
      let isThere = try image.withString(id) { (string) throws(IndexError) in !string.isEmpty }
      if isThere { return false }
    }
    let string = try old.string(id)
    added.insert(string.rawSpan, id: id)
    return true
  }

  private init(copying other: StringInterner) {
    added = other.added
    image = other.image
    nextID = other.nextID
    freeTaken = other.freeTaken
    lowestID = other.lowestID
    seed = other.seed
  }

  /// The table as it is now.
  func copy() -> StringInterner { StringInterner(copying: self) }

  var memoryBytes: Int { added.memoryBytes }

  /// Keeps id 0 for the empty string, which is never looked up.
  func reserveEmptyString() {
    lowestID = 1
    nextID = max(nextID, 1)
  }

  /// The id of a string that is not empty.
  func find(_ content: RawSpan) throws(IndexError) -> UInt32? {
    if let id = added.find(content) { return id }
    return try image?.find(content, seed: seed)
  }

  /// The id of a string that is not empty, a new one if it has none.
  func intern(_ content: RawSpan) throws(IndexError) -> UInt32 {
    if let id = try find(content) { return id }
    let id = try unusedID()
    added.insert(content, id: id)
    return id
  }

  /// Calls `body` with the string of an id.
  @inline(__always)
  func withString<R>(
    _ id: UInt32, _ body: (RawSpan) throws(IndexError) -> R
  ) throws(IndexError) -> R {
    if let result = try added.withString(id, body) { return result }
    guard let image, id < image.count else {
      throw IndexError.imageInvalid(FormatError("id of no label or set"))
    }
    return try image.withString(id, body)
  }

  /// A copy of the string of an id.
  func string(_ id: UInt32) throws(IndexError) -> [UInt8] {
    try withString(id) { (bytes) throws(IndexError) in [UInt8](copying: bytes) }
  }

  private func unusedID() throws(IndexError) -> UInt32 {
    while let image, freeTaken < image.freeCount {
      let id = try image.freeID(freeTaken)
      freeTaken += 1
      let isFree = try image.withString(id) { (string) throws(IndexError) in string.isEmpty }
      if isFree, id >= lowestID, !added.contains(id) { return id }
    }
    guard nextID < UInt32.max - 1 else { throw IndexError.limitExceeded }
    nextID += 1
    return nextID - 1
  }
}
