/// Two words that a caller keeps with a value in the hot cache, so that a hit need not look
/// elsewhere; the cache does not interpret them, but for the number of bytes in the second one.
package struct HotNote: Sendable, Equatable {
  static let words = 2
  /// Reserves the words of a note that is yet to be added; readers get nil for it.
  static let unknown = HotNote(first: 0, second: .max)

  package var first: UInt64
  /// Anything but `UInt64.max`, which marks `unknown`.
  package var second: UInt64

  package init(first: UInt64, second: UInt64) { (self.first, self.second) = (first, second) }

  /// How many bytes of facts stand behind the value: the upper 16 bits of the second word.
  package var factBytes: Int {
    get { self == .unknown ? 0 : Int(second >> 48) }
    set { second = second & 0xffff_ffff_ffff | UInt64(newValue) << 48 }
  }
}

/// The words of a hot cache's entry and of a slot in its table.
///
/// ```
/// entry: u64 sequence (48) | key length (16)     slot: tag (32) | position + 1 (30) | hits (2)
///        u64 tag (32) | note (1) | length (31)         zero is empty
///        key, filled up to words
///        where the note's bit is set: the note, two words
///        value and facts, filled up to words
/// gap:   u64 words (48) | 0 (16)
/// ```
/// A position is that of an entry, in words from the start of its shard's small queue. A tag is 32
/// bits of the key's hash. Readers count hits up, eviction counts them down.
///
/// A gap is an entry that was removed, or the unused end of a ring. It has a key of length 0, which
/// no entry has.
struct HotCacheEntry {
  /// The largest sequence that fits in.
  static let sequenceMax: UInt64 = (1 << 48) - 1
  static let headWords = 2
  /// A slot counts no more hits than this.
  static let hitsMax: UInt64 = 3

  var first: UInt64
  var second: UInt64

  @inline(__always)
  init(first: UInt64, second: UInt64) {
    self.first = first
    self.second = second
  }

  init(sequence: UInt64, tag: UInt64, keyLength: Int, valueLength: Int, hasNote: Bool) {
    first = sequence << 16 | UInt64(keyLength)
    second = tag << 32 | (hasNote ? Self.noteBit : 0) | UInt64(valueLength)
  }

  private static let noteBit: UInt64 = 1 << 31

  static func gap(_ words: Int) -> UInt64 { UInt64(words) << 16 }

  var isGap: Bool { first & 0xffff == 0 }
  @inline(__always) var sequence: UInt64 { first >> 16 }
  @inline(__always) var keyLength: Int { Int(first & 0xffff) }
  @inline(__always) var keyWords: Int { AtomicWords.words(forBytes: keyLength) }
  @inline(__always) var tag: UInt64 { second >> 32 }
  @inline(__always) var valueLength: Int { Int(second & (Self.noteBit &- 1)) }
  @inline(__always) var hasNote: Bool { second & Self.noteBit != 0 }
  @inline(__always) var noteWords: Int { hasNote ? HotNote.words : 0 }

  /// The words of the whole entry or gap.
  var words: Int {
    isGap
      ? Int(first >> 16)
      : Self.headWords + keyWords + noteWords + AtomicWords.words(forBytes: valueLength)
  }

  /// The low half of a key's hash; the highest bits choose the shard. Different keys may share it.
  @inline(__always)
  static func tag(_ hash: UInt64) -> UInt64 { hash & 0xffff_ffff }

  @inline(__always)
  static func slot(tag: UInt64, position: Int, hits: UInt64) -> UInt64 {
    tag << 32 | UInt64(position + 1) << 2 | hits
  }

  @inline(__always)
  static func tag(ofSlot slot: UInt64) -> UInt64 { slot >> 32 }

  @inline(__always)
  static func position(ofSlot slot: UInt64) -> Int { Int((slot >> 2) & 0x3fff_ffff) &- 1 }

  @inline(__always)
  static func hits(ofSlot slot: UInt64) -> UInt64 { slot & hitsMax }
}
