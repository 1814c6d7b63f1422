internal import TidemarkEngine

/// Entries decoded from lines of NDJSON, flat: one arena for all bytes, records of fixed size, and
/// each set of labels once.
///
/// Made for workers that decode chunk after chunk: ``removeAll()`` keeps the memory, so that a
/// line costs no allocation.
package struct DecodedLines: Sendable {
  /// The entries, in the order of their lines.
  package private(set) var lines: [DecodedLine] = []
  /// The sets of labels that they name.
  package var labelSets: LabelSetTable { tables.labelSets }
  /// Fields that were passed over since the beginning.
  package var unknownFields: UnknownFields { tables.unknown }

  /// The bytes up to `used`; what lies behind is room, and holds rubbish.
  private var arena: [UInt8] = []
  private var used = 0
  private var tables = LineTables()

  /// Creates an empty list.
  /// - Parameter bytes: how many bytes of lines are expected.
  package init(expecting bytes: Int = 0) {
    if bytes > 0 { reserve(bytes) }
  }

  /// How many entries there are.
  package var count: Int { lines.count }

  /// How many bytes of keys, values and hashes there are.
  package var byteCount: Int { used }

  /// The bytes of an entry's key, value or hash.
  @_lifetime(borrow self)
  package func bytes(_ range: Range<Int>) -> RawSpan {
    precondition(range.upperBound <= used)
    return arena.rawSpan.extracting(range)
  }

  /// Forgets all entries and keeps the memory, unless it is unusually much.
  package mutating func removeAll() {
    lines.removeAll(keepingCapacity: true)
    tables.labelSets.removeAll()
    tables.unknown = UnknownFields()
    used = 0
    if arena.count > Self.keptBytes { arena = [] }
  }

  /// Decodes a line and appends its entry.
  /// - Parameters:
  ///   - line: the line without its end.
  ///   - number: its number in the file, from 1.
  /// - Throws: what is wrong with the line, of which nothing is kept then.
  package mutating func append(line: RawSpan, number: Int) throws(LineError) {
    reserve(line.byteCount)
    let known = tables.unknown.count
    let start = used
    do throws(JSONError) {
      // A byte order mark, which some editors write, is no part of the text.
      let from = number == 1 && Self.hasByteOrderMark(line) ? 3 : 0
      let (entry, end) = try Self.parse(
        line, from: from, number: number, &arena, at: start, &tables)
      lines.append(entry)
      used = end
    } catch {
      tables.unknown.truncate(to: known)
      throw LineError(error, in: line, number: number)
    }
  }

  /// Decodes a chunk's lines and appends their entries; empty lines are passed over.
  /// - Throws: what is wrong with the first bad line; the entries before it are kept.
  package mutating func append(_ chunk: LineChunk) throws(LineError) {
    reserve(for: chunk)
    for index in chunk.lineEnds.indices {
      let line = chunk.line(index)
      if !line.isEmpty { try append(line: line, number: chunk.firstNumber + index) }
    }
  }

  /// Decodes a chunk's lines and appends the entries of all that can be taken.
  /// - Returns: what is wrong with each of the others.
  package mutating func appendSkippingBad(_ chunk: LineChunk) -> [LineError] {
    reserve(for: chunk)
    var bad: [LineError] = []
    for index in chunk.lineEnds.indices {
      let line = chunk.line(index)
      if line.isEmpty { continue }
      do throws(LineError) {
        try append(line: line, number: chunk.firstNumber + index)
      } catch {
        bad.append(error)
      }
    }
    return bad
  }

  private mutating func reserve(for chunk: LineChunk) {
    reserve(chunk.bytes.count)
    lines.reserveCapacity(lines.count + chunk.lineCount)
  }

  /// Arenas beyond this are given back by ``removeAll()``.
  private static var keptBytes: Int { 16 << 20 }

  private static func hasByteOrderMark(_ line: RawSpan) -> Bool {
    line.byteCount >= 3 && line.extracting(0..<3).holds("\u{feff}")
  }

  /// Makes room for decoding `count` bytes of lines.
  @inline(__always)
  private mutating func reserve(_ count: Int) {
    let missing = used + count - arena.count
    if missing > 0 { grow(by: missing) }
  }

  @inline(never)
  private mutating func grow(by missing: Int) {
    let count = max(missing, arena.count, 4096)
    arena.append(addingCapacity: count) { $0.append(repeating: 0, count: count) }
  }

  /// The arena and the tables are passed apart, so that both can be changed at once.
  private static func parse(
    _ line: RawSpan, from: Int, number: Int, _ arena: inout [UInt8], at start: Int,
    _ tables: inout LineTables
  ) throws(JSONError) -> (DecodedLine, Int) {
    try arena.withMutableRawSpan { (buffer) throws(JSONError) in
      var parser = LineParser(line, from: from, number: number, at: start)
      try parser.parse(&buffer, &tables)
      return (parser.entry, parser.end)
    }
  }
}

/// The tables that the lines of one list have in common.
struct LineTables: Sendable {
  var labelSets = LabelSetTable()
  var unknown = UnknownFields()
  /// The labels of the line that is being read.
  var collector = LabelCollector()
}
