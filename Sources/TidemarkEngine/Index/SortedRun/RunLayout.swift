/// The layout of a sorted run of the index: a file with the newest slot of every key that was
/// written in a range of sequences. Runs lie over each other; the newest that has a key decides.
///
/// All numbers are little-endian. A varint is an unsigned LEB128 number. Offsets of sections count
/// from the start of the data; offsets inside a section from the section's start.
///
/// ```
/// file      header page (4096) | chunk 0 | checksum 0 | chunk 1 | checksum 1 | …
/// chunk     16 KiB of data, the last one what remains
/// checksum  u64 XXH64 of the chunk, seed: sorted run id + chunk number * an odd constant
///           In an encrypted sorted run every chunk is encrypted and its tag of 16 bytes follows
///           it; the checksum covers both.
///
/// header page
///    0  8  magic                        80 u64 keys
///    8 u16 major version                88 u64 live keys
///   10 u16 minor version                96 u64 deleted keys
///   12 u32 number of sections          104 u64 bytes of data
///   16 u64 compatible features         112 u64 longest probe of the hash table, in buckets
///   24 u64 features to know to write   120 u64 live keys of this run and all beneath
///   32 u64 features to know to read    128 sections: u64 offset, u64 bytes, u64 count each
///   40 16  store id                    440 u64 sequence behind which it begins
///   56 u64 sorted run id                    448 u64, u64 next id of a label, of a set of labels
///   64 u64 sequence that it covers     488 key of an encrypted sorted run: `FileSeal`, else zeros
///   72 u64 hash seed                  4088 u64 XXH64 of 0..<4088
///
/// section 0   blocks: 16 keys each, in byte order; the rank of a key is its ordinal
///               u48 least sequence | u8 bits of a sequence | u8 bits of a label set | three
///               columns: sequences less the least | label sets | size classes, u8 each; numbers
///               stand bit after bit, the lowest first, and each column begins at a byte
///               first key: varint length | bytes
///               other keys: varint bytes shared with the key before | varint rest | rest
/// section 1   block offsets: u40 each, one more than there are blocks
/// section 2   samples: per 16 blocks a string that sorts behind all keys before them and not
///               behind their first; u32 offsets of these, one more than there are | strings
/// section 3   hash table: buckets of 64 bytes
///               0 12 x u8 tag: low byte of the key's hash
///              12 12 x u32 ordinal
///              60 u8 entries in use | u8 1 if keys of this bucket stand in the next | u16 zero
///               A key's bucket is its hash scaled to the number of buckets.
/// section 4   posting lists: skips, then blocks of 128 ordinals, ascending
///               skip per block: u32 first ordinal | u32 offset of the block in the list
///               block: varint difference to the ordinal before, for all but the first
/// section 5   labels that a key here carries or lost, ascending by id, 40 bytes each:
///               u32 id | u32 live keys of this run and all beneath that carry it
///               two lists, of the keys here that carry it, and of those that may have, in this
///               run or beneath: u64 offset of the list | u32 ordinals | u32 bytes
/// section 6   label strings: u32 id | u40 offset each, ascending, and one more for the end
/// section 7   label strings: bytes
/// section 8   label strings: hash table of u32 number of the string + 1, 0 is empty; linear
///               probing
/// section 9…11  the same three for sets of labels; a set is its label ids, u32, ascending
/// section 12  whatever the owner of the index wants to keep beside it
/// ```
enum RunLayout {
  static let magic: UInt64 = 0x3158_4449_4544_4954  // "TIDEIDX1"
  static let majorVersion: UInt16 = 5
  static let minorVersion: UInt16 = 0
  static let knownFeatures: UInt64 = encryptionFeature
  /// The chunks are encrypted.
  static let encryptionFeature: UInt64 = 1

  static let headerBytes = 4096
  static let headerChecksumOffset = 4088
  static let sectionTableOffset = 128
  static let sealOffset = 488

  /// Chunks of 16 KiB: a first look-up reads little, and keeps little that nobody asks for.
  static let chunkShift = 14
  static let chunkBytes = 1 << chunkShift
  static let checksumBytes = 8

  static let keysPerBlock = 16
  /// The least bytes of a block: those of its columns without labels, and two lengths a key.
  static func leastBlock(keys: Int) -> Int { 8 + 3 * keys }
  static let blocksPerSample = 16
  /// Bytes that the columns of a block seldom exceed.
  static let usualColumns = 128
  /// The longest block: sixteen of the longest keys with two lengths and a slot of 11 bytes each.
  static let longestBlock = 8 + keysPerBlock * (11 + 6 + Limits.keyBytes)
  /// Bytes of an offset in the sections that hold u40.
  static let offsetBytes = 5

  static let bucketBytes = 64
  static let entriesPerBucket = 12
  // Where in a bucket these stand.
  static let bucketOrdinals = 12
  static let bucketCount = 60
  static let bucketRunsOver = 61

  static let ordinalsPerPosting = 128
  static let skipBytes = 8
  static let listBytes = 16
  /// Bytes of a label in the section of labels: id and count, and two lists.
  static let labelBytes = 8 + 2 * listBytes
  /// Bytes of an entry that leads to a string: its id and where it begins.
  static let stringBytes = 4 + offsetBytes

  static let longestUserInfo = 1 << 20
  /// Ordinals are stored in 32 bits.
  static let mostKeys = Int(UInt32.max) - 1

  enum Section: Int, CaseIterable {
    case blocks, blockOffsets, samples, hash, postings, labels
    case labelOffsets, labelBytes, labelHash
    case setOffsets, setBytes, setHash
    case userInfo
  }

  /// The seed of a chunk's checksum, so that no chunk passes for another.
  static func checksumSeed(runID: UInt64, chunk: Int) -> UInt64 {
    runID &+ UInt64(truncatingIfNeeded: chunk) &* 0x9E37_79B9_7F4A_7C15
  }

  /// Bytes of a chunk in the file.
  /// - Parameter tagBytes: what encryption adds to a chunk.
  static func storedChunkBytes(_ tagBytes: Int) -> Int { chunkBytes + tagBytes + checksumBytes }

  /// Where a chunk stands in the file.
  static func fileOffset(ofChunk chunk: Int, tagBytes: Int) -> Int {
    headerBytes + chunk * storedChunkBytes(tagBytes)
  }

  /// How many chunks this much data takes.
  static func chunks(dataBytes: Int) -> Int { (dataBytes + chunkBytes - 1) >> chunkShift }

  /// How long a file with this much data is.
  static func fileBytes(dataBytes: Int, tagBytes: Int) -> Int {
    headerBytes + dataBytes + chunks(dataBytes: dataBytes) * (tagBytes + checksumBytes)
  }

  /// How many blocks hold this many keys.
  static func blocks(keys: Int) -> Int { (keys + keysPerBlock - 1) / keysPerBlock }

  /// How many samples there are for this many blocks.
  static func samples(blocks: Int) -> Int { (blocks + blocksPerSample - 1) / blocksPerSample }

  /// The bucket of a hash.
  @inline(__always)
  static func bucket(_ hash: UInt64, of buckets: Int) -> Int {
    Int(truncatingIfNeeded: hash.multipliedFullWidth(by: UInt64(buckets)).high)
  }
}
