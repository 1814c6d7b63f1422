/// Collects the heads of a frame (its entries without their values) and encodes them in columns,
/// whose format stands at ``HeadsDecoder``.
struct HeadsBuilder: Sendable {
  private struct Row: Sendable {
    var entry: FrameBuilder.Entry
    /// The number of the entry's set of labels within the frame; nil for an entry without labels.
    var labelSet: Int?
    /// Nil for an entry without a value, such as a delete; 0 for an empty value.
    var valueLength: Int?
    var attributesLength: Int
  }

  /// Keys, labels or attributes of fewer bytes are stored uncompressed: zstd would gain nothing.
  private static let compressedFromBytes = 64

  /// The second entry of a frame reserves memory for this many, so that arrays grow less often.
  private static let usualRows = 256
  private static let usualKeyBytes = 16

  private let hasExplicitSequences: Bool
  private var rows: [Row] = []
  private var columns: HeadColumns = []
  /// The prefix-compressed keys: for each, how many bytes it shares with the key before, the number
  /// of its other bytes, and these.
  private var keys = ByteWriter()
  private var lastKey: [UInt8] = []
  private var labelSets = ByteWriter()
  private var labelSetCount = 0
  private var attributes: [UInt8] = []
  /// The sum of the lengths of all keys, shared prefixes included.
  private var keyBytes = 0

  init(hasExplicitSequences: Bool) { self.hasExplicitSequences = hasExplicitSequences }

  var count: Int { rows.count }
  /// The bytes of keys and attributes in full, which the frame's header tells.
  var textBytes: Int { keyBytes + attributes.count }
  var labelBytes: Int { labelSets.count }
  /// At least as many bytes as the heads take, compressed or not.
  var mostBytes: Int {
    keys.count + attributes.count + labelSets.count + rows.count * Self.rowBytes + 256
  }
  /// The numbers of a head, each as long as can be, and its share of bitmaps.
  private static let rowBytes = 48

  /// Adds a set of labels to the frame's table, where heads refer to it by number.
  /// - Parameter append: adds the number of labels, and each label with its length before it.
  /// - Returns: the number of the set, which heads name.
  mutating func addLabelSet(_ append: (inout ByteWriter) -> Void) -> Int {
    // The second set shows that a frame has several.
    if labelSetCount == 1 { labelSets.bytes.reserveCapacity(Self.usualRows * Self.usualKeyBytes) }
    append(&labelSets)
    labelSetCount += 1
    return labelSetCount - 1
  }

  /// - Parameter labelSet: the number of its set; nil for none.
  mutating func append(
    _ entry: FrameBuilder.Entry, labelSet: Int?, key: RawSpan, valueLength: Int?,
    attributes more: RawSpan
  ) {
    // Frames of one entry are many, and those of two mostly get more.
    if rows.count == 1 {
      rows.reserveCapacity(Self.usualRows)
      keys.bytes.reserveCapacity(Self.usualRows * Self.usualKeyBytes)
    }
    rows.append(
      Row(
        entry: entry, labelSet: labelSet, valueLength: valueLength,
        attributesLength: more.byteCount))
    if entry.kind != .put { columns.insert(.kinds) }
    if labelSet != nil { columns.insert(.labelSets) }
    if valueLength != nil { columns.insert(.valueLengths) }
    if entry.previous != 0 { columns.insert(.previous) }
    if entry.valueSequence != 0 { columns.insert(.valueSequences) }
    if entry.created != 0 { columns.insert(.created) }
    append(key)
    guard !more.isEmpty else { return }
    columns.insert(.attributeLengths)
    attributes.append(copying: more)
  }

  private mutating func append(_ key: RawSpan) {
    var shared = 0
    if rows.count > 1 {
      shared = lastKey.rawSpan.commonPrefix(with: key)
      keys.varint(shared)
    }
    let rest = key.extracting(droppingFirst: shared)
    keys.varint(rest.byteCount)
    keys.raw(rest)
    let dropped = lastKey.count - shared
    lastKey.removeLast(dropped)
    lastKey.append(copying: rest)
    keyBytes += key.byteCount
  }

  /// Marks the last entry as the last of its batch.
  mutating func endBatch() {
    guard !rows.isEmpty else { return }
    rows[rows.count - 1].entry.endsBatch = true
  }

  // MARK: Encoding

  /// Appends the heads.
  /// - Parameter level: zstd's level; nil leaves all as it is.
  /// - Returns: whether it takes the segment's dictionary to read them.
  func encode(
    into writer: inout ByteWriter, level: Int32?, codecs: FrameCodecs
  ) throws(FormatError) -> Bool {
    guard !rows.isEmpty else { return false }
    var columns = columns
    columns.insert(.commitTimes)
    if hasExplicitSequences { columns.insert(.sequences) }
    if rows.contains(where: { !$0.entry.endsBatch }) { columns.insert(.ends) }
    writer.u16(columns.rawValue)
    var usesDictionary = false
    var texts: [[UInt8]] = []
    for raw in rawTexts(columns) {
      var stored: [UInt8] = []
      var codec = Codec.raw
      if let level, raw.count >= Self.compressedFromBytes {
        codec = try codecs.encode(raw.rawSpan, level: level, appendingTo: &stored)
      }
      writer.varint(UInt64((codec == .raw ? raw : stored).count) << 2 | UInt64(codec.rawValue))
      if codec != .raw { writer.varint(raw.count) }
      if codec == .zstdDictionary { usesDictionary = true }
      texts.append(codec == .raw ? raw : stored)
    }
    encodeColumns(columns, into: &writer)
    for text in texts { writer.raw(text) }
    return usesDictionary
  }

  private func rawTexts(_ columns: HeadColumns) -> [[UInt8]] {
    var texts = [keys.bytes]
    if columns.contains(.labelSets) {
      var sets = ByteWriter(capacity: labelSets.count + 4)
      sets.varint(labelSetCount)
      sets.raw(labelSets.bytes)
      texts.append(sets.bytes)
    }
    if columns.contains(.attributeLengths) { texts.append(attributes) }
    return texts
  }

  private func encodeColumns(_ columns: HeadColumns, into writer: inout ByteWriter) {
    if columns.contains(.kinds) { writer.column(rows) { UInt64($0.entry.kind.rawValue) } }
    if columns.contains(.ends) { writer.column(rows) { $0.entry.endsBatch ? 1 : 0 } }
    if columns.contains(.sequences) { writer.column(rows) { $0.entry.sequence } }
    if columns.contains(.labelSets) { writer.column(rows) { $0.labelSet.map { UInt64($0) } } }
    if columns.contains(.valueLengths) { writer.column(rows) { $0.valueLength.map { UInt64($0) } } }
    if columns.contains(.previous) {
      writer.column(rows) { $0.entry.previous == 0 ? nil : $0.entry.sequence - $0.entry.previous }
    }
    writer.column(rows) { $0.entry.commitTime }
    if columns.contains(.valueSequences) {
      writer.column(rows) { row in
        row.entry.valueSequence == 0 ? nil : row.entry.sequence - row.entry.valueSequence
      }
    }
    if columns.contains(.created) {
      writer.column(rows) { row in
        guard row.entry.created != 0 else { return nil }
        let age = Int64(bitPattern: row.entry.commitTime &- row.entry.created)
        return UInt64(bitPattern: (age << 1) ^ (age >> 63))
      }
    }
    if columns.contains(.attributeLengths) {
      writer.column(rows) { $0.attributesLength == 0 ? nil : UInt64($0.attributesLength) }
    }
  }
}
