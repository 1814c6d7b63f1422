#if PostgreSQL
  internal import TidemarkEngine

  /// A statement of SQL, prepared once for each connection, under a name that its text gives it.
  struct Statement: Sendable {
    let name: String
    let text: String

    init(_ text: String) {
      self.text = text
      let bytes = Array(text.utf8)
      name = "tm_" + String(XXH64.hash(bytes.rawSpan, seed: 0), radix: 36)
    }

    func callAsFunction(_ parameters: Parameter...) -> Call {
      Call(statement: self, parameters: parameters)
    }
  }

  /// A statement with its parameters.
  struct Call: Sendable {
    var statement: Statement
    var parameters: [Parameter]
  }

  /// A parameter of a statement, sent in PostgreSQL's binary format. Statements state the types of
  /// their parameters by casts.
  enum Parameter: Sendable {
    case bigint(Int64)
    case bytea([UInt8]?)
    case text(String)
    case bigints([Int64])
    case bools([Bool])
    case byteas([[UInt8]?])

    /// A number without sign is stored as its bits, and never ordered by SQL.
    static func bits(_ number: UInt64) -> Parameter { .bigint(Int64(bitPattern: number)) }

    var isNull: Bool { if case .bytea(nil) = self { true } else { false } }

    /// Adds the parameter in PostgreSQL's binary format.
    func encode(into buffer: inout [UInt8]) {
      switch self {
      case .bigint(let number): Self.add(number, to: &buffer)
      case .bytea(let bytes): buffer += bytes ?? []
      case .text(let text): buffer += text.utf8
      case .bigints(let numbers):
        Self.begin(20, numbers.count, &buffer)
        for number in numbers {
          Self.add(Int32(8), to: &buffer)
          Self.add(number, to: &buffer)
        }
      case .bools(let bools):
        Self.begin(16, bools.count, &buffer)
        for bool in bools {
          Self.add(Int32(1), to: &buffer)
          buffer.append(bool ? 1 : 0)
        }
      case .byteas(let rows):
        Self.begin(17, rows.count, &buffer)
        for row in rows {
          Self.add(Int32(row?.count ?? -1), to: &buffer)
          buffer += row ?? []
        }
      }
    }

    private static func add(_ number: some FixedWidthInteger, to buffer: inout [UInt8]) {
      for shift in stride(from: number.bitWidth - 8, through: 0, by: -8) {
        buffer.append(UInt8(truncatingIfNeeded: number >> shift))
      }
    }

    /// Begins an SQL array in PostgreSQL's binary format: number of dimensions, a flag for nulls,
    /// OID of the elements' type, element count, first index. Each element follows behind its
    /// length, which is -1 for null.
    private static func begin(_ type: Int32, _ count: Int, _ buffer: inout [UInt8]) {
      let fields = [count == 0 ? 0 : 1, 1, type] + (count == 0 ? [] : [Int32(count), 1])
      for field in fields { add(field, to: &buffer) }
    }
  }
#endif
