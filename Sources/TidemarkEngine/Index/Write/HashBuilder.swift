// SAFETY: one allocation of `buckets` buckets, made and freed here alone; a bucket's number is
// always below that, an entry's below twelve.

/// Builds the hash table of a sorted run from keys to their ordinals.
@safe
final class HashBuilder {
  private static let wordsPerBucket = RunLayout.bucketBytes / 4
  private static let ordinalWord = RunLayout.bucketOrdinals / 4
  private static let countWord = RunLayout.bucketCount / 4
  /// So many entries wait while the processor fetches their buckets from memory.
  private static let waitingEntries = 16

  private typealias Entry = (hash: UInt64, ordinal: UInt32)

  /// Buckets as words whose bytes go to the file from the lowest to the highest.
  private let words: UnsafeMutablePointer<UInt32>
  private let buckets: Int
  /// Entries that are not placed yet; once full a ring, from `oldest` on.
  private var waiting: [Entry] = []
  private var oldest = 0
  /// How far from its bucket the farthest entry stands; known after `write`.
  private(set) var longestProbe = 0

  /// A table for at most `keys` keys, at most four fifths full.
  init(keys: Int) {
    buckets = keys == 0 ? 0 : keys * 5 / (RunLayout.entriesPerBucket * 4) + 1
    let count = buckets * Self.wordsPerBucket
    unsafe words = .allocate(capacity: max(count, 1))
    unsafe words.initialize(repeating: 0, count: count)
    waiting.reserveCapacity(Self.waitingEntries)
  }

  deinit { unsafe words.deallocate() }

  /// Adds an entry; there may be as many as the table was made for.
  func insert(_ hash: UInt64, _ ordinal: UInt32) throws(IndexError) {
    guard buckets > 0 else { throw IndexError.limitExceeded }
    let bucket = RunLayout.bucket(hash, of: buckets)
    unsafe prefetch(words + bucket * Self.wordsPerBucket)
    if waiting.count < Self.waitingEntries {
      waiting.append((hash, ordinal))
      return
    }
    let due = waiting[oldest]
    waiting[oldest] = (hash, ordinal)
    oldest = (oldest + 1) % Self.waitingEntries
    try place(due)
  }

  /// Places the entries that wait, and writes the section; to be called once, after all `insert`.
  func write(to writer: inout SectionWriter) throws(IndexError) {
    for entry in waiting { try place(entry) }
    waiting.removeAll()
    try writer.begin(alignment: RunLayout.bucketBytes)
    var piece = ByteWriter(capacity: RunLayout.bucketBytes)
    for bucket in 0..<buckets {
      for word in 0..<Self.wordsPerBucket {
        piece.u32(unsafe words[bucket * Self.wordsPerBucket + word])
      }
      try writer.append(piece.bytes.rawSpan)
      piece.bytes.removeAll(keepingCapacity: true)
    }
    writer.end(.hash, count: buckets)
  }

  private func place(_ entry: Entry) throws(IndexError) {
    var bucket = RunLayout.bucket(entry.hash, of: buckets)
    for probe in 0..<buckets {
      let base = unsafe words + bucket * Self.wordsPerBucket
      let used = unsafe Int(base[Self.countWord] & 0xff)
      if used < RunLayout.entriesPerBucket {
        let tag = UInt32(truncatingIfNeeded: entry.hash & 0xff)
        unsafe base[used >> 2] |= tag << UInt32(8 * (used & 3))
        unsafe base[Self.ordinalWord + used] = entry.ordinal
        unsafe base[Self.countWord] += 1
        longestProbe = max(longestProbe, probe)
        return
      }
      // Tells look-ups that entries of this full bucket stand in the next one.
      unsafe base[Self.countWord] |= 0x100
      bucket = bucket + 1 == buckets ? 0 : bucket + 1
    }
    throw IndexError.limitExceeded
  }
}
