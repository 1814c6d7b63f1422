/// The labels that a key of a feed (the log of changes that peers read) has lost. So a peer that
/// reads by label learns that a key has left it, even if compaction has dropped entries between.
///
/// ```
/// varint  count; per label: varint length, bytes, varint left
/// varint  0, or one more than `forgottenThrough`
/// ```
package struct FormerLabels: Sendable, Hashable {
  package struct Row: Sendable, Hashable {
    package var label: [UInt8]
    /// The sequence of the entry that left the label out; 0 stands for the entry that carries this
    /// attribute, whose sequence is not known when the attribute is encoded.
    package var left: UInt64
  }

  package private(set) var rows: [Row] = []
  /// Labels left out up to this entry may be missing here; nil where none is, 0 as in a row.
  package private(set) var forgottenThrough: UInt64?

  /// Most labels, and bytes of them, that are kept; the others are forgotten, the oldest first.
  package static let mostRows = 32
  package static let mostBytes = 1024

  package init() {}

  /// For a key of which nothing is known up to an entry.
  package init(forgottenThrough sequence: UInt64) { forgottenThrough = sequence }

  /// The former labels of a key's next entry.
  /// - Parameters:
  ///   - former: those of the entry before it.
  ///   - labels: the labels of the entry before; none for a delete.
  ///   - sequence: the sequence of the entry before, or 0 where it has none yet.
  ///   - next: the labels of the next entry, in byte order.
  package init(
    after former: FormerLabels, _ labels: [[UInt8]], at sequence: UInt64, next: [[UInt8]]
  ) {
    let former = former.placed(at: sequence)
    forgottenThrough = former.forgottenThrough
    let isLeft = labels.filter { !next.contains($0) }
    rows = former.rows.filter { row in !next.contains(row.label) && !isLeft.contains(row.label) }
    rows += isLeft.map { Row(label: $0, left: 0) }
    // The oldest are forgotten first; 0 is the newest entry, so it comes last.
    func order(_ row: Row) -> UInt64 { row.left == 0 ? .max : row.left }
    rows.sort { a, b in
      let (first, second) = (order(a), order(b))
      return first == second ? a.label.lexicographicallyPrecedes(b.label) : first < second
    }
    var bytes = rows.reduce(0) { $0 + $1.label.count }
    while rows.count > Self.mostRows || bytes > Self.mostBytes {
      let row = rows.removeFirst()
      bytes -= row.label.count
      forgottenThrough =
        row.left == 0 || forgottenThrough == 0 ? 0 : max(forgottenThrough ?? 0, row.left)
    }
  }

  /// The same with the sequence of the entry that carries it in the place of 0.
  package func placed(at sequence: UInt64) -> FormerLabels {
    var placed = self
    for index in rows.indices where rows[index].left == 0 { placed.rows[index].left = sequence }
    if forgottenThrough == 0 { placed.forgottenThrough = sequence }
    return placed
  }

  package var isEmpty: Bool { rows.isEmpty && forgottenThrough == nil }

  func encode(into writer: inout ByteWriter) {
    writer.varint(rows.count)
    for row in rows {
      writer.blob(row.label)
      writer.varint(row.left)
    }
    writer.varint(forgottenThrough.map { $0 &+ 1 } ?? 0)
  }

  init(from reader: inout ByteReader) throws(FormatError) {
    var bytes = 0
    for _ in 0..<(try reader.varint(atMost: Self.mostRows)) {
      let label = try reader.blob(atMost: Self.mostBytes)
      bytes += label.count
      rows.append(Row(label: label, left: try reader.varint()))
    }
    guard bytes <= Self.mostBytes else { throw FormatError("too many former labels") }
    let forgotten = try reader.varint()
    forgottenThrough = forgotten == 0 ? nil : forgotten - 1
  }
}
