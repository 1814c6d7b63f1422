#if PostgreSQL
  internal import CPostgres
  internal import Tidemark
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol

  // SAFETY: the result is complete when it is made, is only read, and is freed with its only owner.

  /// The rows that a statement returned, in PostgreSQL's binary format.
  @safe
  final class Rows: @unchecked Sendable {
    private let result: OpaquePointer

    init(_ result: OpaquePointer) { unsafe self.result = result }

    deinit { unsafe PQclear(result) }

    var status: ExecStatusType { unsafe PQresultStatus(result) }
    var count: Int { Int(unsafe PQntuples(result)) }
    var first: Row? { count > 0 ? self[0] : nil }
    subscript(_ index: Int) -> Row { Row(rows: self, index: Int32(index)) }
    var all: some BidirectionalCollection<Row> { (0..<count).lazy.map { self[$0] } }

    /// What the statement did, such as `COMMIT`.
    var tag: String { unsafe String(cString: PQcmdStatus(result)) }

    var failure: Failure {
      let state = unsafe PQresultErrorField(result, 67).map { unsafe String(cString: $0) }
      let message = unsafe PQresultErrorField(result, 77).map { unsafe String(cString: $0) }
      let whole = unsafe String(cString: PQresultErrorMessage(result))
      return Failure(state: state ?? "", message: (message ?? whole).oneLine)
    }

    /// The bytes of a field; nil for SQL's null.
    fileprivate func bytes(_ row: Int32, _ column: Int32) -> [UInt8]? {
      if isNull(row, column) { return nil }
      let count = Int(unsafe PQgetlength(result, row, column))
      return unsafe [UInt8](
        UnsafeRawBufferPointer(start: PQgetvalue(result, row, column), count: count))
    }

    fileprivate func isNull(_ row: Int32, _ column: Int32) -> Bool {
      unsafe PQgetisnull(result, row, column) != 0
    }

    fileprivate func number(_ row: Int32, _ column: Int32) throws(TidemarkError) -> Int64 {
      let count = Int(unsafe PQgetlength(result, row, column))
      guard !isNull(row, column), (1...8).contains(count),
        let start = unsafe PQgetvalue(result, row, column)
      else { throw Row.otherType }
      let bytes = unsafe UnsafeRawBufferPointer(start: start, count: count)
      if count == 8 { return unsafe Int64(bigEndian: bytes.loadUnaligned(as: Int64.self)) }
      // PostgreSQL sends integers big-endian in two's complement, so the first byte has the sign.
      var number = unsafe Int64(Int8(bitPattern: bytes[0]))
      for index in 1..<count { number = unsafe number << 8 | Int64(bytes[index]) }
      return number
    }
  }

  /// One row, whose columns are read one after the other.
  struct Row {
    fileprivate let rows: Rows
    fileprivate let index: Int32
    private var column: Int32 = 0

    fileprivate init(rows: Rows, index: Int32) {
      self.rows = rows
      self.index = index
    }

    static let otherType = TidemarkError(
      .damaged, "PostgreSQL answered with other columns than were asked for")

    private mutating func next() -> Int32 {
      defer { column += 1 }
      return column
    }

    /// Whether the column that is read next has SQL's null.
    var isNull: Bool { rows.isNull(index, column) }

    mutating func skip() { column += 1 }

    mutating func bigint() throws(TidemarkError) -> Int64 { try rows.number(index, next()) }
    mutating func int() throws(TidemarkError) -> Int { Int(try bigint()) }
    /// A number without sign, stored as its bits.
    mutating func bits() throws(TidemarkError) -> UInt64 { UInt64(bitPattern: try bigint()) }
    /// The same in two columns, the lower bits first.
    mutating func bits128() throws(TidemarkError) -> UInt128 {
      let low = UInt128(try bits())
      return UInt128(try bits()) << 64 | low
    }
    /// A number that SQL orders, so that it has no sign; see ``clamped(_:)``.
    mutating func ordered() throws(TidemarkError) -> UInt64 {
      let number = try bigint()
      guard number >= 0 else { throw Self.otherType }
      return number == .max ? .max : UInt64(number)
    }
    mutating func bool() throws(TidemarkError) -> Bool { try bigint() != 0 }

    mutating func optionalBytes() -> [UInt8]? { rows.bytes(index, next()) }

    mutating func bytes() throws(TidemarkError) -> [UInt8] {
      guard let bytes = optionalBytes() else { throw Self.otherType }
      return bytes
    }

    mutating func text() throws(TidemarkError) -> String {
      String(decoding: try bytes(), as: UTF8.self)
    }

    /// A replica's id or another one of its length.
    mutating func replica() throws(TidemarkError) -> ReplicaID {
      guard let id = ReplicaID(try bytes()) else { throw Self.otherType }
      return id
    }
  }

  extension Parameter {
    /// A number that SQL orders; the greatest one stands for all that are greater.
    static func ordered(_ number: UInt64) -> Parameter { .bigint(Int64(clamping: number)) }
  }

  extension String {
    /// The text without line breaks, as a log has it.
    var oneLine: String {
      split { $0.isNewline }.map { $0.drop { $0 == " " || $0 == "\t" } }.joined(separator: " ")
    }
  }
#endif
