internal import TidemarkEngine

/// Reads one line into a ``DecodedLine``.
///
/// Everything is decoded straight into the arena. `end` is where the entry's bytes end so far;
/// what is decoded only to be looked at (names, words, times) goes behind it and is overwritten.
struct LineParser: ~Escapable {
  private var scanner: JSONScanner
  private var seen = LineFieldSet()
  /// A set of labels that the table does not have yet.
  private var newLabelsHash: UInt64?
  private(set) var entry: DecodedLine
  private(set) var end: Int

  @_lifetime(copy line)
  init(_ line: RawSpan, from offset: Int, number: Int, at start: Int) {
    scanner = JSONScanner(line, at: offset)
    entry = DecodedLine(number: number)
    end = start
  }

  mutating func parse(
    _ buffer: inout MutableRawSpan, _ tables: inout LineTables
  ) throws(JSONError) {
    try scanner.expect(UInt8(ascii: "{"), .objectExpected)
    if !scanner.accept(UInt8(ascii: "}")) {
      repeat { try member(&buffer, &tables) } while scanner.accept(UInt8(ascii: ","))
      try scanner.expect(UInt8(ascii: "}"), .commaOrBraceExpected)
    }
    let closing = scanner.offset - 1
    try scanner.expectEnd()
    try checkFields(closing)
    if let hash = newLabelsHash {
      entry.labelSet = tables.labelSets.insert(tables.collector, in: buffer.bytes, hash: hash)
    }
  }

  private mutating func member(
    _ buffer: inout MutableRawSpan, _ tables: inout LineTables
  ) throws(JSONError) {
    guard scanner.peek() == UInt8(ascii: "\"") else { throw scanner.error(.nameExpected) }
    let start = scanner.offset
    let nameEnd = try scanner.string(into: &buffer, at: end)
    let field = LineField(named: buffer.bytes.extracting(end..<nameEnd))
    try scanner.expect(UInt8(ascii: ":"), .colonExpected)
    guard let field else {
      try scanner.skipValue(depth: 1)
      tables.unknown.insert(buffer.bytes.extracting(end..<nameEnd))
      return
    }
    guard seen.insert(field) else { throw refuse(.duplicate(field), at: start) }
    switch field {
    case .key: entry.key = try text(field, &buffer, atMost: Limits.keyBytes, atLeast: 1)
    case .value: entry.value = try text(field, &buffer, atMost: Limits.valueBytes)
    case .hash: entry.hash = try text(field, &buffer, atMost: Limits.hashBytes)
    case .labels, .labelsBase64: try labels(field, &buffer, &tables)
    case .time: try time(&buffer)
    case .op, .entryClass: try word(field, &buffer)
    case .maxAge: try maxAge()
    case .attachment: try attachment(&buffer)
    case .keyBase64:
      entry.key = try base64(field, &buffer, atMost: Limits.keyBytes, atLeast: 1)
    case .valueBase64: entry.value = try base64(field, &buffer, atMost: Limits.valueBytes)
    case .hashBase64: entry.hash = try base64(field, &buffer, atMost: Limits.hashBytes)
    case .sequence, .operationID: try scanner.skipValue(depth: 1)
    }
  }

  /// The checks that take the whole line.
  private func checkFields(_ closing: Int) throws(JSONError) {
    try checkExclusive(.key, .keyBase64, closing)
    try checkExclusive(.hash, .hashBase64, closing)
    try checkExclusive(.value, .valueBase64, closing)
    guard seen.contains(.key) || seen.contains(.keyBase64) else {
      throw refuse(.keyMissing, at: closing)
    }
    let hasValue = seen.contains(.value) || seen.contains(.valueBase64)
    if hasValue != (entry.operation == .put) {
      throw refuse(hasValue ? .valueUnwanted : .valueMissing, at: closing)
    }
    if entry.operation != .put, entry.attachment != nil {
      throw refuse(.attachmentUnwanted, at: closing)
    }
    if entry.operation != .put, entry.labelSet != 0 || newLabelsHash != nil {
      throw refuse(.labelsUnwanted, at: closing)
    }
  }

  private func checkExclusive(
    _ a: LineField, _ b: LineField, _ closing: Int
  ) throws(JSONError) {
    if seen.contains(a), seen.contains(b) { throw refuse(.exclusive(a, b), at: closing) }
  }

  /// The error for a value of the wrong kind, or for what is no value at all.
  @inline(never)
  private mutating func mismatch(_ problem: LineProblem) throws(JSONError) -> JSONError {
    let start = scanner.offset
    try scanner.skipValue(depth: 1)
    return refuse(problem, at: start)
  }

  @inline(__always)
  private func refuse(_ problem: LineProblem, at offset: Int) -> JSONError {
    JSONError(.refused(problem), at: offset)
  }
}

// MARK: - Fields

extension LineParser {
  /// Decodes a string behind `end` without keeping it.
  /// - Returns: where it ends.
  @inline(__always)
  private mutating func string(
    _ field: LineField, _ buffer: inout MutableRawSpan
  ) throws(JSONError) -> Int {
    guard scanner.peek() == UInt8(ascii: "\"") else {
      throw try mismatch(.notString(field))
    }
    return try scanner.string(into: &buffer, at: end)
  }

  /// Keeps the bytes up to `newEnd`, if they are within their bounds.
  @inline(__always)
  private mutating func keep(
    _ newEnd: Int, _ field: LineField, _ start: Int, atMost limit: Int, atLeast least: Int
  ) throws(JSONError) -> Range<Int> {
    let range = end..<newEnd
    guard range.count >= least else { throw refuse(.empty(field), at: start) }
    guard range.count <= limit else { throw refuse(.tooLong(field), at: start) }
    end = newEnd
    return range
  }

  private mutating func text(
    _ field: LineField, _ buffer: inout MutableRawSpan, atMost limit: Int, atLeast least: Int = 0
  ) throws(JSONError) -> Range<Int> {
    _ = scanner.peek()
    let start = scanner.offset
    let newEnd = try string(field, &buffer)
    return try keep(newEnd, field, start, atMost: limit, atLeast: least)
  }

  private mutating func base64(
    _ field: LineField, _ buffer: inout MutableRawSpan, atMost limit: Int, atLeast least: Int = 0
  ) throws(JSONError) -> Range<Int> {
    _ = scanner.peek()
    let start = scanner.offset
    let textEnd = try string(field, &buffer)
    guard let newEnd = Base64.decode(in: &buffer, end..<textEnd) else {
      throw refuse(.notBase64(field), at: start)
    }
    return try keep(newEnd, field, start, atMost: limit, atLeast: least)
  }

  private mutating func word(
    _ field: LineField, _ buffer: inout MutableRawSpan
  ) throws(JSONError) {
    _ = scanner.peek()
    let start = scanner.offset
    let wordEnd = try string(field, &buffer)
    let word = buffer.bytes.extracting(end..<wordEnd)
    if field == .op {
      if word.holds("put") {
        entry.operation = .put
      } else if word.holds("delete") {
        entry.operation = .delete
      } else if word.holds("touch") {
        entry.operation = .touch
      } else {
        throw refuse(.unknownOperation, at: start)
      }
    } else if word.holds("cache") {
      entry.entryClass = .cache
    } else if !word.holds("owned") {
      throw refuse(.unknownClass, at: start)
    }
  }

  private mutating func time(_ buffer: inout MutableRawSpan) throws(JSONError) {
    _ = scanner.peek()
    let start = scanner.offset
    let textEnd = try string(.time, &buffer)
    let time = Timestamp(rfc3339: buffer.bytes.extracting(end..<textEnd))
    guard let time else { throw refuse(.badTime, at: start) }
    entry.time = time
  }

  private mutating func attachment(_ buffer: inout MutableRawSpan) throws(JSONError) {
    _ = scanner.peek()
    let start = scanner.offset
    let textEnd = try string(.attachment, &buffer)
    guard textEnd - end <= Self.mostAttachmentText else { throw refuse(.badAttachment, at: start) }
    let text = [UInt8](copying: buffer.bytes.extracting(end..<textEnd))
    guard let id = AttachmentID(text: String(decoding: text, as: UTF8.self)) else {
      throw refuse(.badAttachment, at: start)
    }
    entry.attachment = id
  }

  private static var mostAttachmentText: Int { 128 }

  private mutating func maxAge() throws(JSONError) {
    let isNegative = scanner.peek() == UInt8(ascii: "-")
    let start = scanner.offset
    guard isNegative || scanner.peek() &- UInt8(ascii: "0") < 10 else {
      throw try mismatch(.notInteger(.maxAge))
    }
    guard try scanner.skipNumber() else { throw refuse(.notInteger(.maxAge), at: start) }
    guard !isNegative,
      let seconds = scanner.wholeNumber(from: start, atMost: UInt64(UInt32.max))
    else { throw refuse(.maxAgeRange, at: start) }
    entry.maxAge = UInt32(seconds)
  }

  private mutating func labels(
    _ field: LineField, _ buffer: inout MutableRawSpan, _ tables: inout LineTables
  ) throws(JSONError) {
    let before = end
    if seen.contains(.labels), seen.contains(.labelsBase64) {
      recallLabels(&buffer, &tables)
    } else {
      tables.collector.removeAll()
    }
    guard scanner.accept(UInt8(ascii: "[")) else {
      throw try mismatch(.notArray(field))
    }
    if !scanner.accept(UInt8(ascii: "]")) {
      repeat { try label(field, &buffer, &tables) } while scanner.accept(UInt8(ascii: ","))
      try scanner.expect(UInt8(ascii: "]"), .commaOrBracketExpected)
    }
    let hash = tables.labelSets.hash(tables.collector, in: buffer.bytes)
    if let set = tables.labelSets.find(tables.collector, in: buffer.bytes, hash: hash) {
      entry.labelSet = set
      newLabelsHash = nil
      end = before
    } else {
      newLabelsHash = hash
    }
  }

  private mutating func label(
    _ field: LineField, _ buffer: inout MutableRawSpan, _ tables: inout LineTables
  ) throws(JSONError) {
    _ = scanner.peek()
    let start = scanner.offset
    var newEnd = try string(field, &buffer)
    if field == .labelsBase64 {
      guard let decoded = Base64.decode(in: &buffer, end..<newEnd) else {
        throw refuse(.notBase64(field), at: start)
      }
      newEnd = decoded
    }
    let label = try keep(newEnd, field, start, atMost: Limits.labelBytes, atLeast: 1)
    guard tables.collector.insert(label.lowerBound, label.count, in: buffer.bytes) else {
      throw refuse(.tooManyLabels, at: start)
    }
  }

  /// Brings the labels of the line's other list back to where they are collected, if they were
  /// found in the table: then their bytes are gone. There is room for them, since the text that
  /// they were read from is longer.
  private mutating func recallLabels(_ buffer: inout MutableRawSpan, _ tables: inout LineTables) {
    guard newLabelsHash == nil else { return }
    tables.collector.removeAll()
    for label in tables.labelSets.labels(inSet: entry.labelSet) {
      for (offset, byte) in label.enumerated() {
        buffer.storeBytes(of: byte, toByteOffset: end + offset, as: UInt8.self)
      }
      _ = tables.collector.insert(end, label.count, in: buffer.bytes)
      end += label.count
    }
  }
}
