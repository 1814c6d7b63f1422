/// Builds the hash table of an image. See ``ImageLayout``.
struct HashBuilder {
  private static let wordsPerBucket = ImageLayout.bucketBytes / 4
  private static let ordinalWord = ImageLayout.bucketOrdinals / 4
  private static let countWord = ImageLayout.bucketCount / 4

  /// Buckets as words whose bytes go to the file from the lowest to the highest.
  private var words: [UInt32]
  private let buckets: Int
  /// How far from its bucket the farthest entry stands.
  private(set) var longestProbe = 0

  /// A table for at most `keys` keys, at most four fifths full.
  init(keys: Int) {
    buckets = keys == 0 ? 0 : keys * 5 / (ImageLayout.entriesPerBucket * 4) + 1
    words = [UInt32](repeating: 0, count: buckets * Self.wordsPerBucket)
  }

  /// Adds an entry; there must be fewer than the table was made for.
  mutating func insert(_ hash: UInt64, _ ordinal: UInt32) throws(IndexError) {
    guard buckets > 0 else { throw IndexError.limitExceeded }
    var bucket = ImageLayout.bucket(hash, of: buckets)
    for probe in 0..<buckets {
      let base = bucket * Self.wordsPerBucket
      let used = Int(words[base + Self.countWord] & 0xff)
      if used < ImageLayout.entriesPerBucket {
        let tag = UInt32(truncatingIfNeeded: hash & 0xff)
        words[base + used >> 2] |= tag << UInt32(8 * (used & 3))
        words[base + Self.ordinalWord + used] = ordinal
        words[base + Self.countWord] += 1
        longestProbe = max(longestProbe, probe)
        return
      }
      words[base + Self.countWord] |= 0x100
      bucket = bucket + 1 == buckets ? 0 : bucket + 1
    }
    throw IndexError.limitExceeded
  }

  func write(to writer: inout SectionWriter) throws(IndexError) {
    try writer.begin(alignment: ImageLayout.bucketBytes)
    try writer.append(words)
    writer.end(.hash, count: buckets)
  }
}

extension SectionWriter {
  /// Appends numbers of four bytes.
  mutating func append(_ numbers: [UInt32]) throws(IndexError) {
    var piece = ByteWriter(capacity: 4096)
    for number in numbers {
      piece.u32(number)
      if piece.count == 4096 {
        try append(piece.bytes.rawSpan)
        piece.bytes.removeAll(keepingCapacity: true)
      }
    }
    try append(piece.bytes.rawSpan)
  }
}
