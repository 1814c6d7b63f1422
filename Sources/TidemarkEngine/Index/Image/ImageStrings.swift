/// A table of byte strings in an image: labels, or sets of labels. See ``ImageLayout``.
struct ImageStrings {
  let image: Image
  private let offsets: ImageLayout.Section
  private let content: ImageLayout.Section
  private let hash: ImageLayout.Section
  private let free: ImageLayout.Section

  static func labels(_ image: Image) -> ImageStrings {
    ImageStrings(
      image: image, offsets: .labelOffsets, content: .labelBytes, hash: .labelHash,
      free: .freeLabels)
  }

  static func sets(_ image: Image) -> ImageStrings {
    ImageStrings(
      image: image, offsets: .setOffsets, content: .setBytes, hash: .setHash, free: .freeSets)
  }

  private init(
    image: Image, offsets: ImageLayout.Section, content: ImageLayout.Section,
    hash: ImageLayout.Section, free: ImageLayout.Section
  ) {
    self.image = image
    self.offsets = offsets
    self.content = content
    self.hash = hash
    self.free = free
  }

  /// Ids lie below this.
  var count: Int { image.header[offsets].count }

  /// How many ids are not in use.
  var freeCount: Int { image.header[free].count }

  /// An id that is not in use.
  func freeID(_ index: Int) throws(IndexError) -> UInt32 {
    let bytes = try image.bytes(free, 4 * index, 4)
    guard let id = try? bytes.u32(at: 0), id < count else { throw image.damage(free, 4 * index) }
    return id
  }

  /// Calls `body` with the string of an id below `count`; empty if the id is not in use.
  @inline(__always)
  func withString<R>(
    _ id: UInt32, _ body: (RawSpan) throws(IndexError) -> R
  ) throws(IndexError) -> R {
    let place = Int(id) * ImageLayout.offsetBytes
    let ends = try image.bytes(offsets, place, 2 * ImageLayout.offsetBytes)
    let start = Image.offset(ends, 0)
    let end = Image.offset(ends, ImageLayout.offsetBytes)
    guard start <= end, end - start <= ImageStrings.longest else {
      throw image.damage(offsets, place)
    }
    return try body(try image.bytes(content, start, end - start))
  }

  /// No label and no set of labels is longer.
  static let longest = max(Limits.labelBytes, 4 * Limits.labelsPerEntry)

  /// The id of a string.
  func find(_ string: RawSpan, seed: UInt64) throws(IndexError) -> UInt32? {
    let capacity = image.header[hash].count
    guard capacity > 0 else { return nil }
    var position = Int(truncatingIfNeeded: KeyHash.hash(string, seed: seed)) & (capacity - 1)
    for _ in 0..<capacity {
      let bytes = try image.bytes(hash, 4 * position, 4)
      guard let entry = try? bytes.u32(at: 0), entry <= count else {
        throw image.damage(hash, 4 * position)
      }
      if entry == 0 { return nil }
      let isEqual = try withString(entry - 1) { (other) throws(IndexError) in
        other.isEqual(to: string)
      }
      if isEqual { return entry - 1 }
      position = (position + 1) & (capacity - 1)
    }
    return nil
  }
}
