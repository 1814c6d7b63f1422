/// The labels that a key of a feed has had and has no more, each with the entry that left it out:
/// readers who know the key by one of them hear that it has left, whatever compaction has dropped.
///
/// ```
/// varint  count; per label: varint length, bytes, varint left
/// varint  0, or one more than `forgottenThrough`
/// ```
package struct FormerLabels: Sendable, Hashable {
  package struct Row: Sendable, Hashable {
    package var label: [UInt8]
    /// The entry that left it out; 0 for the one that this is an attribute of, whose sequence is
    /// not known yet when it is written.
    package var left: UInt64
  }

  package private(set) var rows: [Row] = []
  /// Labels that were left out up to this entry may be missing; nil where none is, 0 as in a row.
  package private(set) var forgottenThrough: UInt64?

  /// Most labels, and bytes of them, that are kept; the others are forgotten, the oldest first.
  package static let mostRows = 32
  package static let mostBytes = 1024

  package init() {}

  /// Nothing is known of what was left out up to an entry.
  package init(forgottenThrough sequence: UInt64) { forgottenThrough = sequence }

  /// The labels that a key has lost with an entry that follows another one.
  /// - Parameters:
  ///   - former: those of the entry before.
  ///   - labels: that entry's labels; none for a delete.
  ///   - sequence: that entry's, or 0 where it has none yet.
  ///   - next: the labels of the entry that follows, in byte order.
  package init(
    after former: FormerLabels, _ labels: [[UInt8]], at sequence: UInt64, next: [[UInt8]]
  ) {
    let former = former.placed(at: sequence)
    forgottenThrough = former.forgottenThrough
    let isLeft = labels.filter { !next.contains($0) }
    rows = former.rows.filter { row in !next.contains(row.label) && !isLeft.contains(row.label) }
    rows += isLeft.map { Row(label: $0, left: 0) }
    bound()
  }

  private mutating func bound() {
    // A label that is left out just now comes last.
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

  /// The same, read from an entry that has its sequence.
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
