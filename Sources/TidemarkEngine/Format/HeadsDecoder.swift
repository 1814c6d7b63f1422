/// Reads the heads of a frame (the headers of its entries), checked, as the bytes may be damaged.
///
/// Heads are kept in columns: the numbers of one kind stand together, so that they are short and
/// one entry can be read without the others. Keys, sets of labels and attributes are *texts*.
///
/// ```
/// u16      which columns there are, see HeadColumns
/// texts    keys; where there are label sets, the sets; where there are attributes, these. Each:
///          varint 4 * stored length + codec; varint raw length, unless the codec is raw
/// columns  u8 bits of a number (at most 56, or 64), and 128 where some entries have none
///          varint the least number
///          where some have none, a bitmap of those that have one
///          each number less the least one
/// texts    as stored
///
/// keys     but for the first one varint how many bytes it shares with the key before;
///          varint length of the rest; the rest
/// sets     varint how many; per set varint number of labels, per label varint length, bytes
/// ```
package struct HeadsDecoder: ~Escapable {
  /// Entry headers decoded from a frame, and the bytes of keys and attributes that they point into.
  struct Decoded {
    var entries: [EntryHead] = []
    /// The frame's sets of labels by number; a set that no decoded head names may be empty.
    var labelSets: [[[UInt8]]] = []
    /// The bytes of keys and attributes, where heads have offsets.
    var text: [UInt8] = []
  }

  private struct Text {
    var codec: Codec
    var rawLength: Int
    var storedLength: Int
    var start = 0
  }

  private let bytes: RawSpan
  private let header: FrameHeader
  private let codecs: FrameCodecs
  private let present: HeadColumns
  /// In the order of `HeadColumns.all`; nil for one that is left out.
  private var columns: [NumberColumn?] = []
  private var texts: [Text] = []

  /// - Parameters:
  ///   - bytes: the heads as stored, and decrypted.
  ///   - header: the frame's; it has entries.
  @_lifetime(copy bytes)
  package init(
    _ bytes: RawSpan, header: FrameHeader, codecs: FrameCodecs
  ) throws(FormatError) {
    self.bytes = bytes
    self.header = header
    self.codecs = codecs
    var reader = ByteReader(bytes)
    let present = HeadColumns(rawValue: try reader.u16())
    guard present.rawValue & ~HeadColumns.known == 0 else {
      throw FormatError("unknown columns of heads", isNewer: true)
    }
    guard present.contains(.commitTimes),
      present.contains(.sequences) == header.hasExplicitSequences
    else { throw FormatError("the columns of heads do not fit their frame") }
    self.present = present
    var count = 1
    if present.contains(.labelSets) { count += 1 }
    if present.contains(.attributeLengths) { count += 1 }
    for _ in 0..<count { texts.append(try Self.text(&reader, header)) }
    columns.reserveCapacity(HeadColumns.all.count)
    for column in HeadColumns.all {
      guard present.contains(column) else {
        columns.append(nil)
        continue
      }
      columns.append(
        try NumberColumn(
          &reader, count: header.entryCount, mayLack: !HeadColumns.ofAll.contains(column)))
    }
    for index in texts.indices {
      texts[index].start = try reader.skip(texts[index].storedLength)
    }
    guard reader.remaining == 0 else { throw FormatError("bytes behind the last entry") }
  }

  private static func text(
    _ reader: inout ByteReader, _ header: FrameHeader
  ) throws(FormatError) -> Text {
    let word = try reader.varint(atMost: 4 * textBytes + 3)
    guard let codec = Codec(rawValue: UInt8(word & 3)) else {
      throw FormatError("unknown codec of heads", isNewer: true)
    }
    guard codec != .zstdDictionary || header.usesDictionary else {
      throw FormatError("heads ask for a dictionary that the frame does not name")
    }
    let raw = codec == .raw ? word >> 2 : try reader.varint(atMost: textBytes)
    return Text(codec: codec, rawLength: raw, storedLength: word >> 2)
  }

  /// Most bytes of a text: those of the heads, and lengths of keys or labels between them.
  private static let textBytes = 2 * Limits.frameHeadsBytes

  private func text(_ index: Int) throws(FormatError) -> [UInt8] {
    let text = texts[index]
    return try codecs.decode(
      try bytes.slice(text.start, text.storedLength), codec: text.codec, rawLength: text.rawLength)
  }

  // MARK: Decoding heads

  /// Decodes the heads of all entries, and checks that they have the lengths that the header tells.
  func all() throws(FormatError) -> Decoded {
    var decoded = Decoded()
    var entries = (0..<header.entryCount).map { head(at: $0) }
    for (number, column) in columns.enumerated() {
      try column?.forEach(in: bytes, count: entries.count) { (index, value) throws(FormatError) in
        try set(number, to: value, in: &entries[index])
      }
    }
    decoded.labelSets = try labelSets { _ in true }
    var keys = KeyReader(bytes: try text(0))
    var valueOffset = 0
    for index in entries.indices {
      try keys.next()
      entries[index].keyStart = decoded.text.count
      entries[index].keyLength = keys.key.count
      entries[index].valueOffset = valueOffset
      valueOffset += entries[index].valueLength
      try check(entries[index], labelSets: decoded.labelSets.count)
      decoded.text += keys.key
      guard decoded.text.count <= header.headsRawLength else { throw Self.otherLength }
    }
    try keys.end()
    var start = decoded.text.count
    if present.contains(.attributeLengths) { decoded.text += try text(texts.count - 1) }
    for index in entries.indices where entries[index].attributesLength > 0 {
      entries[index].attributesStart = start
      start += entries[index].attributesLength
    }
    guard start == decoded.text.count, start == header.headsRawLength else {
      throw Self.otherLength
    }
    decoded.entries = entries
    return decoded
  }

  /// Decodes the heads of a few entries, without the columns and labels of the others.
  /// - Parameter wanted: which, in ascending order.
  func some(_ wanted: [Int]) throws(FormatError) -> Decoded {
    var decoded = Decoded()
    for index in wanted {
      guard index >= 0, index < header.entryCount else {
        throw FormatError("fewer entries than were said")
      }
      var entry = head(at: index)
      for (number, column) in columns.enumerated() {
        guard let value = try column?.number(of: index, in: bytes) else { continue }
        try set(number, to: value, in: &entry)
      }
      decoded.entries.append(entry)
    }
    var named = [Bool](
      repeating: false, count: decoded.entries.reduce(0) { max($0, $1.labelSet + 1) })
    for entry in decoded.entries where entry.labelSet >= 0 { named[entry.labelSet] = true }
    if !named.isEmpty { decoded.labelSets = try labelSets { $0 < named.count && named[$0] } }
    let valueStarts = try starts(.valueLengths, of: wanted)
    var keys = KeyReader(bytes: try text(0))
    var passed = 0
    for (place, index) in wanted.enumerated() {
      while passed <= index {
        try keys.next()
        passed += 1
      }
      decoded.entries[place].keyStart = decoded.text.count
      decoded.entries[place].keyLength = keys.key.count
      decoded.entries[place].valueOffset = valueStarts[place]
      decoded.text += keys.key
      guard decoded.text.count <= header.headsRawLength else { throw Self.otherLength }
      try check(decoded.entries[place], labelSets: decoded.labelSets.count)
    }
    guard decoded.entries.contains(where: { $0.attributesLength > 0 }) else { return decoded }
    let attributes = try text(texts.count - 1)
    let attributeStarts = try starts(.attributeLengths, of: wanted)
    for place in wanted.indices {
      let length = decoded.entries[place].attributesLength
      decoded.entries[place].attributesStart = decoded.text.count
      decoded.text.append(copying: try attributes.rawSpan.slice(attributeStarts[place], length))
    }
    return decoded
  }

  /// What is known of an entry without any column.
  private func head(at index: Int) -> EntryHead {
    EntryHead(sequence: header.firstSequence &+ UInt64(index))
  }

  /// Sets the field of a column; columns come in their order, so that links follow the sequence
  /// and the age follows the commit time.
  @inline(__always)
  private func set(
    _ column: Int, to value: UInt64, in head: inout EntryHead
  ) throws(FormatError) {
    switch HeadColumns.all[column] {
    case .kinds:
      guard let kind = EntryKind(rawValue: UInt8(clamping: value)) else {
        throw FormatError("unknown kind of entry", isNewer: true)
      }
      head.kind = kind
    case .ends: head.endsBatch = try Self.bounded(value, 1) == 1
    case .sequences: head.sequence = value
    case .labelSets: head.labelSet = try Self.bounded(value, Limits.frameEntries)
    case .valueLengths:
      head.hasValue = true
      head.valueLength = try Self.bounded(value, Limits.recordBytes)
    case .previous: head.previous = try Self.earlier(head.sequence, by: value)
    case .commitTimes: head.commitTime = value
    case .valueSequences: head.valueSequence = try Self.earlier(head.sequence, by: value)
    case .created:
      let age = Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
      head.created = head.commitTime &- UInt64(bitPattern: age)
    default:
      head.attributesLength = try Self.bounded(value, EntryAttributes.maximumBytes)
      guard value > 0 else { throw FormatError("attributes without bytes") }
    }
  }

  private static func bounded(_ value: UInt64, _ most: Int) throws(FormatError) -> Int {
    guard value <= UInt64(most) else { throw FormatError("number out of bounds") }
    return Int(value)
  }

  private static func earlier(
    _ sequence: UInt64, by distance: UInt64
  ) throws(FormatError) -> UInt64 {
    guard distance > 0, distance < sequence else {
      throw FormatError("sequence link out of bounds")
    }
    return sequence - distance
  }

  private func check(_ head: EntryHead, labelSets: Int) throws(FormatError) {
    guard head.sequence > 0, head.sequence < 1 << 48 else {
      throw FormatError("sequence out of bounds")
    }
    guard head.keyLength > 0 || head.kind == .record else { throw FormatError("empty key") }
    guard head.labelSet < labelSets else { throw FormatError("label set out of bounds") }
    guard (head.kind == .put) == head.hasValue || head.kind == .record,
      (head.kind == .touch) == (head.valueSequence != 0),
      head.kind != .touch || head.labelSet < 0
    else { throw FormatError("fields do not fit the kind of entry") }
  }

  private static let otherLength = FormatError("heads have another length than their frame says")

  /// Where the values, or the attributes, of some entries begin among those of the frame.
  private func starts(
    _ column: HeadColumns, of wanted: [Int]
  ) throws(FormatError) -> [Int] {
    var starts = [Int](repeating: 0, count: wanted.count)
    guard let lengths = columns[column.rawValue.trailingZeroBitCount] else { return starts }
    var (place, sum) = (0, 0)
    try lengths.forEach(in: bytes, count: header.entryCount) { (index, length) in
      while place < wanted.count, wanted[place] <= index {
        starts[place] = sum
        place += 1
      }
      // A bound for the sum: the number of entries is bounded, too.
      sum += Int(length & 0xffff_ffff)
    }
    for later in place..<wanted.count { starts[later] = sum }
    return starts
  }

  // MARK: Decoding labels

  /// The sets of labels of the frame.
  /// - Parameter wants: whether a set is to be decoded; another one is empty.
  private func labelSets(
    _ wants: (Int) -> Bool
  ) throws(FormatError) -> [[[UInt8]]] {
    guard present.contains(.labelSets) else { return [] }
    let text = try text(1)
    var reader = ByteReader(text.rawSpan)
    let count = try reader.varint(atMost: header.entryCount)
    var sets: [[[UInt8]]] = []
    sets.reserveCapacity(count)
    for number in 0..<count {
      let isWanted = wants(number)
      var labels: [[UInt8]] = []
      let count = try reader.varint(atMost: Limits.labelsPerEntry)
      guard count > 0 else { throw FormatError("empty label set") }
      for _ in 0..<count {
        let length = try reader.varint(atMost: Limits.labelBytes)
        guard length > 0 else { throw FormatError("empty label") }
        let start = try reader.skip(length)
        guard isWanted else { continue }
        let label = [UInt8](copying: try reader.bytes.slice(start, length))
        if let last = labels.last, !last.lexicographicallyPrecedes(label) {
          throw FormatError("labels out of order")
        }
        labels.append(label)
      }
      sets.append(labels)
    }
    guard reader.remaining == 0 else { throw FormatError("bytes behind the last label") }
    return sets
  }
}

/// Puts the keys of a frame together, one after the other.
private struct KeyReader {
  let bytes: [UInt8]
  var offset = 0
  var isFirst = true
  var key: [UInt8] = []

  mutating func next() throws(FormatError) {
    let bytes = bytes
    var reader = ByteReader(bytes.rawSpan, at: offset)
    let shared = isFirst ? 0 : try reader.varint(atMost: key.count)
    let length = try reader.varint(atMost: Limits.keyBytes - shared)
    let start = try reader.skip(length)
    offset = reader.offset
    isFirst = false
    key.removeLast(key.count - shared)
    key.append(copying: try bytes.rawSpan.slice(start, length))
  }

  func end() throws(FormatError) {
    guard offset == bytes.count else { throw FormatError("bytes behind the last key") }
  }
}
