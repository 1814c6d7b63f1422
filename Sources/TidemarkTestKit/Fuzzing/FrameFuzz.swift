internal import TidemarkEngine

/// Decodes one frame. Options: bit 1, the lengths are brought into the bytes there are; bit 2, the
/// segment has a dictionary.
enum FrameFuzz {
  static let salt: UInt32 = 0x5eed_f00d
  private static let offset = FormatConstants.segmentHeaderBytes
  private static let contexts = ZstdContexts()
  private static let dictionary = try? ZstdDictionary(
    Array("tidemark note label value key frame store ".utf8), level: FrameCodecs.fastLevel)

  static func run(_ input: FuzzInput) throws(FuzzFinding) {
    var bytes = input.body
    if input.repairs {
      ChecksumRepair.frame(
        &bytes, at: 0, end: bytes.count, salt: salt, position: offset, fits: input.flag(1))
    }
    let codecs = FrameCodecs(
      contexts: contexts, dictionary: input.flag(2) ? dictionary : nil)
    do throws(FormatError) {
      let header = try FrameHeader(decoding: bytes.rawSpan, salt: salt, offset: offset)
      let again = header.encoded(salt: salt, offset: offset)
      guard again == Array(bytes.prefix(FormatConstants.frameHeaderBytes)) else {
        throw FormatError(Self.wrong + "a header changes when it is encoded again")
      }
      let stored = try bytes.rawSpan.slice(
        FormatConstants.frameHeaderBytes,
        min(header.frontLength, bytes.count - FormatConstants.frameHeaderBytes))
      let front = try DecodedFront(stored, header: header, offset: offset, codecs: codecs)
      try readEntries(front)
      let some = Array(stride(from: front.entries.count % 2, to: front.entries.count, by: 3))
      try compare(
        try DecodedFront(stored, header: header, offset: offset, codecs: codecs, only: some),
        some.map { front.entries[$0] }, of: front)
      try readBlocks(front, bytes, codecs)
    } catch {
      guard !error.reason.hasPrefix(wrong) else { throw FuzzFinding(error.reason) }
    }
  }

  /// Tells a wrong answer from bytes that were refused.
  private static let wrong = "wrong: "

  private static func readEntries(_ front: DecodedFront) throws(FormatError) {
    for entry in front.entries {
      guard front.key(of: entry).byteCount == entry.keyLength,
        front.attributeBytes(of: entry).byteCount == entry.attributesLength
      else { throw FormatError(wrong + "a key or attributes have another length") }
      let labels = front.labels(of: entry)
      for (a, b) in zip(labels, labels.dropFirst()) where !a.lexicographicallyPrecedes(b) {
        throw FormatError(wrong + "labels out of order")
      }
      // A bad entry must not keep the others from being read.
      guard let attributes = try? front.attributes(of: entry) else { continue }
      var writer = ByteWriter()
      attributes.encode(into: &writer)
      guard let again = try? EntryAttributes(decoding: writer.bytes.rawSpan),
        again == attributes
      else { throw FormatError(wrong + "attributes change when they are encoded again") }
    }
  }

  /// Heads that are decoded alone are those that are decoded with all others.
  private static func compare(
    _ some: DecodedFront, _ wanted: [EntryHead], of front: DecodedFront
  ) throws(FormatError) {
    for (a, b) in zip(some.entries, wanted) {
      guard a.sequence == b.sequence, a.kind == b.kind, a.endsBatch == b.endsBatch,
        a.valueOffset == b.valueOffset, a.valueLength == b.valueLength, a.previous == b.previous,
        a.valueSequence == b.valueSequence, a.commitTime == b.commitTime, a.created == b.created,
        some.key(of: a).isEqual(to: front.key(of: b)), some.labels(of: a) == front.labels(of: b),
        some.attributeBytes(of: a).isEqual(to: front.attributeBytes(of: b))
      else { throw FormatError(wrong + "a head that is decoded alone differs") }
    }
    guard some.entries.count == wanted.count else {
      throw FormatError(wrong + "heads are missing that were asked for")
    }
  }

  private static func readBlocks(
    _ front: DecodedFront, _ bytes: [UInt8], _ codecs: FrameCodecs
  ) throws(FormatError) {
    let places = try front.places()
    guard places.count == front.entries.count else {
      throw FormatError(wrong + "not every entry has a place")
    }
    var table = LocatorTable()
    table.append(
      header: front.header, offset: offset, blocks: front.blocks, places: places,
      holdsRecords: front.holdsRecords)
    var raw = 0
    for block in table.blocks {
      let stored = try bytes.rawSpan.slice(Int(block.offset) - offset, Int(block.storedLength))
      let decoded = try codecs.decode(
        try block.entry.contents(stored), codec: block.codec, rawLength: Int(block.rawLength))
      guard decoded.count == Int(block.rawLength) else {
        throw FormatError(wrong + "a block has another length")
      }
      raw += decoded.count
    }
    guard places.isEmpty || raw == front.entries.reduce(0, { $0 + $1.valueLength }) else {
      throw FormatError(wrong + "values and blocks differ in length")
    }
  }

  // MARK: Seeds

  static func seeds() -> [[UInt8]] {
    [
      seed(options: 1, level: nil, explicit: false, hasDictionary: false),
      seed(options: 3, level: FrameCodecs.compactionLevel, explicit: false, hasDictionary: false),
      seed(options: 5, level: FrameCodecs.compactionLevel, explicit: true, hasDictionary: true),
      seed(options: 3, level: nil, explicit: true, hasDictionary: false),
      empty(), attributes(),
    ].compactMap { $0 }
  }

  private static func seed(
    options: UInt8, level: Int32?, explicit: Bool, hasDictionary: Bool
  ) -> [UInt8]? {
    var builder = FrameBuilder(hasExplicitSequences: explicit)
    for number in 0..<9 {
      var entry = FrameBuilder.Entry(
        kind: number == 3 ? .delete : number == 5 ? .touch : number == 7 ? .record : .put,
        endsBatch: number % 2 == 1, sequence: 100 + UInt64(number),
        commitTime: 0x19b_0000_0000_0000 + UInt64(number) << 16)
      entry.labelSetID = entry.kind == .put ? UInt32(number % 3) : 0
      entry.previous = number > 4 ? 90 : 0
      entry.valueSequence = number == 5 ? 101 : 0
      entry.created = number == 6 ? 0x19a_0000_0000_0000 : 0
      let length = number == 8 ? 17_000 : number == 2 ? 0 : 5 * number
      let value = [UInt8](repeating: UInt8(number), count: length)
      let hasValue = entry.kind == .put
      let key = Array("note/\(number)".utf8)
      let body: RawSpan = value.rawSpan
      if hasValue {
        builder.add(entry, key: key.rawSpan, value: body, attributes: RawSpan(), labels: labels)
      } else {
        builder.add(entry, key: key.rawSpan, value: nil, attributes: RawSpan(), labels: labels)
      }
      // The long value is for compressed frames alone: seeds are to be small.
      if number == 7, level == nil { break }
    }
    return finish(&builder, options: options, level: level, hasDictionary: hasDictionary)
  }

  private static func labels(_ id: UInt32) -> [[UInt8]] {
    id == 1 ? [Array("inbox".utf8)] : [Array("done".utf8), Array("inbox".utf8)]
  }

  private static func attributes() -> [UInt8]? {
    var attributes = EntryAttributes()
    attributes.time = Timestamp(seconds: -5, nanoseconds: 999_999_999)
    attributes.hash = Array("0af1".utf8)
    attributes.maxAge = 60
    attributes.entryClass = .cache
    attributes.base = .position(epoch: 7, offset: 300)
    attributes.origin = .init(replica: Array(1...16), sequence: 99)
    attributes.priority = -3
    attributes.after = [1, 200]
    attributes.attachment = AttachmentID(hash: Array(1...32), length: 1 << 33)
    attributes.alias = Array("other".utf8)
    attributes.schemaVersion = 2
    attributes.generation = [1, 2]
    attributes.atomicGroup = 4
    attributes.recordType = 5
    var builder = FrameBuilder()
    for number in 0..<2 {
      if number == 1 {
        attributes.base = .operation(replica: Array(1...16), sequence: 5)
        attributes.hash = [0xff, 0]
      }
      var writer = ByteWriter()
      attributes.encode(into: &writer)
      let entry = FrameBuilder.Entry(
        kind: .put, endsBatch: true, sequence: UInt64(number) + 1, commitTime: 1 << 40)
      let key: [UInt8] = [0x6b, UInt8(number)]
      builder.add(
        entry, key: key.rawSpan, value: key.rawSpan, attributes: writer.bytes.rawSpan,
        labels: labels)
    }
    return finish(&builder, options: 3, level: nil, hasDictionary: false)
  }

  private static func empty() -> [UInt8]? {
    var output: [UInt8] = [1]
    let codecs = FrameCodecs(contexts: contexts)
    var frame = FrameBuilder(nextSequence: 8)
    let built = try? frame.finish(
      appendingTo: &output, offset: offset, salt: salt, durableThrough: 7, level: nil,
      codecs: codecs)
    return built == nil ? nil : output
  }

  private static func finish(
    _ builder: inout FrameBuilder, options: UInt8, level: Int32?, hasDictionary: Bool
  ) -> [UInt8]? {
    var output: [UInt8] = [options]
    let codecs = FrameCodecs(contexts: contexts, dictionary: hasDictionary ? dictionary : nil)
    let built = try? builder.finish(
      appendingTo: &output, offset: offset, salt: salt, durableThrough: 99, level: level,
      codecs: codecs)
    return built == nil ? nil : output
  }
}
