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

    /// The parameter in PostgreSQL's binary format; nil for SQL's null.
    var encoded: [UInt8]? {
      switch self {
      case .bigint(let number): Self.bytes(number)
      case .bytea(let bytes): bytes
      case .text(let text): Array(text.utf8)
      case .bigints(let numbers): Self.array(of: 20, numbers) { Self.bytes($0) }
      case .bools(let bools): Self.array(of: 16, bools) { [$0 ? 1 : 0] }
      case .byteas(let rows): Self.array(of: 17, rows) { $0 }
      }
    }

    private static func bytes<T: FixedWidthInteger>(_ number: T) -> [UInt8] {
      stride(from: T.bitWidth - 8, through: 0, by: -8).map {
        UInt8(truncatingIfNeeded: number >> T($0))
      }
    }

    /// An SQL array in PostgreSQL's binary format: number of dimensions, a flag for nulls, OID of
    /// the elements' type, element count, first index; then each element behind its length, which
    /// is -1 for null.
    private static func array<T>(
      of type: Int32, _ elements: [T], _ encode: (T) -> [UInt8]?
    ) -> [UInt8] {
      var array: [UInt8] = []
      func add(_ number: Int32) { array += bytes(number) }
      add(elements.isEmpty ? 0 : 1)
      add(1)
      add(type)
      if !elements.isEmpty {
        add(Int32(elements.count))
        add(1)
      }
      for element in elements {
        guard let bytes = encode(element) else {
          add(-1)
          continue
        }
        add(Int32(bytes.count))
        array += bytes
      }
      return array
    }
  }
#endif
