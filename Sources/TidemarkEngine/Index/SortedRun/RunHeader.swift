/// The header page of a sorted run, decoded. See ``RunLayout``.
package struct RunHeader: Sendable {
  struct Section: Sendable, Equatable {
    var offset = 0
    var bytes = 0
    var count = 0
  }

  /// The store that the sorted run belongs to, 16 bytes.
  package var storeID: [UInt8]
  /// Names the sorted run; part of every checksum in it.
  package var runID: UInt64
  /// The run covers all entries behind `base`, up to and including this sequence.
  package var sequence: UInt64
  /// Up to which sequence the run beneath reaches; 0 if there is none.
  package var base: UInt64 = 0
  /// The seed of the hashes of keys.
  package var seed: UInt64
  /// How many keys there are, deleted ones too.
  package var keys = 0
  /// How many keys are not deleted; derived keys (rows of collections' indexes) do not count.
  package var liveKeys = 0
  /// How many keys are tombstones: deleted, and here because a run beneath or the log has them.
  package var deletedKeys = 0
  /// The same as `liveKeys`, for this run and all beneath together.
  package var totalLiveKeys = 0
  /// The next ids for a new label and for a new set of labels; ids are never given out twice.
  var nextLabel = 0
  var nextSet = 0
  /// Of all sections together.
  var dataBytes = 0
  /// How many buckets behind its own one a key of the hash table stands at most.
  var longestProbe = 0
  /// The sorted run's key, encrypted with the user's; nil when the sorted run is not encrypted.
  package var seal: FileSeal?
  var sections = [Section](repeating: Section(), count: RunLayout.Section.allCases.count)

  subscript(section: RunLayout.Section) -> Section {
    get { sections[section.rawValue] }
    set { sections[section.rawValue] = newValue }
  }

  /// The bytes that encryption adds to a chunk.
  var tagBytes: Int { seal == nil ? 0 : BlockSealer.tagBytes }

  func encoded() -> [UInt8] {
    var page = prefix(isSealed: seal != nil)
    seal?.encode(into: &page)
    page.zeros(RunLayout.headerChecksumOffset - page.count)
    page.u64(XXH64.hash(page.bytes.rawSpan))
    return page.bytes
  }

  /// Adds the sorted run's key. Its seal authenticates the fields before it: none may change any
  /// more.
  mutating func seal(with key: NewFileKey?) throws(FormatError) {
    seal = try key?.seal(fileID: runID, prefix: prefix(isSealed: true).bytes)
  }

  /// The fields before the seal.
  private func prefix(isSealed: Bool) -> ByteWriter {
    var page = ByteWriter(capacity: RunLayout.headerBytes)
    page.u64(RunLayout.magic)
    page.u16(RunLayout.majorVersion)
    page.u16(RunLayout.minorVersion)
    page.u32(UInt32(sections.count))
    page.zeros(16)
    page.u64(isSealed ? RunLayout.encryptionFeature : 0)
    page.raw(storeID)
    for value in [runID, sequence, seed] { page.u64(value) }
    for value in [keys, liveKeys, deletedKeys, dataBytes, longestProbe, totalLiveKeys] {
      page.u64(UInt64(value))
    }
    for section in sections {
      for value in [section.offset, section.bytes, section.count] { page.u64(UInt64(value)) }
    }
    page.u64(base)
    for value in [nextLabel, nextSet] { page.u64(UInt64(value)) }
    page.zeros(RunLayout.sealOffset - page.count)
    return page
  }
}

extension RunHeader {
  /// Decodes a header page and checks that its numbers fit each other.
  init(_ page: RawSpan) throws(FormatError) {
    guard page.byteCount == RunLayout.headerBytes else { throw FormatError("header cut short") }
    guard try page.u64(at: 0) == RunLayout.magic else { throw FormatError("not a sorted run") }
    let sum = try page.u64(at: RunLayout.headerChecksumOffset)
    guard sum == XXH64.hash(try page.slice(0, RunLayout.headerChecksumOffset)) else {
      throw FormatError("header checksum differs")
    }
    let version = try page.u16(at: 8)
    guard version <= RunLayout.majorVersion,
      try page.u64(at: 32) & ~RunLayout.knownFeatures == 0
    else { throw FormatError("sorted run of a later version", isNewer: true) }
    guard version == RunLayout.majorVersion else {
      throw FormatError("sorted run of an earlier version; the log makes it anew")
    }
    guard try page.u32(at: 12) == UInt32(sections.count) else {
      throw FormatError("another number of sections")
    }
    if try page.u64(at: 32) & RunLayout.encryptionFeature != 0 {
      seal = try FileSeal(page, at: RunLayout.sealOffset)
    }
    storeID = [UInt8](copying: try page.slice(40, 16))
    runID = try page.u64(at: 56)
    sequence = try page.u64(at: 64)
    seed = try page.u64(at: 72)
    // Small enough that no product in `checkCounts` overflows.
    let most = 1 << 48
    var reader = ByteReader(page, at: 80)
    keys = try reader.size(atMost: RunLayout.mostKeys)
    liveKeys = try reader.size(atMost: keys)
    deletedKeys = try reader.size(atMost: keys)
    dataBytes = try reader.size(atMost: most)
    longestProbe = try reader.size(atMost: most)
    totalLiveKeys = try reader.size(atMost: RunLayout.mostKeys)
    reader.offset = RunLayout.sectionTableOffset
    for i in sections.indices {
      sections[i].offset = try reader.size(atMost: dataBytes)
      sections[i].bytes = try reader.size(atMost: dataBytes - sections[i].offset)
      sections[i].count = try reader.size(atMost: most)
    }
    base = try reader.u64()
    nextLabel = try reader.size(atMost: Int(UInt32.max))
    nextSet = try reader.size(atMost: Int(UInt32.max))
    try checkCounts()
  }

  /// Checks that the sizes of sections fit their counts, so that readers need not look again.
  private func checkCounts() throws(FormatError) {
    let blocks = RunLayout.blocks(keys: keys)
    let samples = RunLayout.samples(blocks: blocks)
    // Ids of labels and sets have 32 bits.
    let most = min(dataBytes, Int(UInt32.max) - 2)
    func has(_ section: RunLayout.Section, count: Int, bytes: Int) -> Bool {
      self[section].count == count && self[section].bytes == bytes
    }
    func strings(_ offsets: RunLayout.Section, _ hash: RunLayout.Section) -> Bool {
      let count = self[offsets].count
      let capacity = self[hash].count
      return count <= most && capacity <= most
        && self[offsets].bytes == (count + 1) * RunLayout.stringBytes
        && self[hash].bytes == capacity * 4 && (capacity & (capacity - 1)) == 0
    }
    let buckets = self[.hash].count
    let labels = self[.labels].count
    guard liveKeys + deletedKeys <= keys, sequence <= Slot.maxSequence, base <= sequence,
      base > 0 || totalLiveKeys == liveKeys,
      // A run above this one would have base 0, which says that no run is beneath.
      sequence > 0 || keys == 0,
      self[.blocks].count == keys,
      has(.blockOffsets, count: blocks, bytes: (blocks + 1) * RunLayout.offsetBytes),
      self[.samples].count == samples, self[.samples].bytes >= (samples + 1) * 4,
      buckets <= dataBytes, self[.hash].bytes == buckets * RunLayout.bucketBytes,
      buckets > 0 || keys == 0, longestProbe <= buckets,
      strings(.labelOffsets, .labelHash), strings(.setOffsets, .setHash), labels <= most,
      has(.labels, count: labels, bytes: labels * RunLayout.labelBytes),
      self[.userInfo].bytes <= RunLayout.longestUserInfo
    else { throw FormatError("sections do not fit their counts") }
  }
}

extension ByteReader {
  /// A u64 that must not exceed `limit`.
  fileprivate mutating func size(atMost limit: Int) throws(FormatError) -> Int {
    let value = try u64()
    guard value <= UInt64(limit) else { throw FormatError("number out of bounds") }
    return Int(value)
  }
}
