/// The bytes of a key or value in a ``Script``. Long bytes are described by a recipe, so that the
/// script's text stays readable.
public enum ScriptBytes: Sendable, Hashable {
  /// The bytes are written out in the script.
  case literal([UInt8])
  /// One byte, repeated `count` times.
  case run(UInt8, count: Int)
  /// Random bytes from a seed; they cannot be compressed.
  case noise(seed: UInt64, count: Int)
  /// Words of a small vocabulary from a seed; they compress about as well as typical records.
  case words(seed: UInt64, count: Int)

  /// Creates the UTF-8 bytes of a text.
  public init(_ text: String) { self = .literal(Array(text.utf8)) }

  /// These bytes, as a run where they are one.
  init(compact bytes: [UInt8]) {
    if bytes.count > 16, let first = bytes.first, bytes.allSatisfy({ $0 == first }) {
      self = .run(first, count: bytes.count)
    } else {
      self = .literal(bytes)
    }
  }

  /// The bytes that the recipe describes.
  public var bytes: [UInt8] {
    switch self {
    case .literal(let bytes): bytes
    case .run(let byte, let count): [UInt8](repeating: byte, count: max(0, count))
    case .noise(let seed, let count):
      {
        var generator = SeededGenerator(seed: seed)
        return generator.bytes(count)
      }()
    case .words(let seed, let count): Self.words(seed, count)
    }
  }

  /// How many bytes the recipe describes.
  public var count: Int {
    switch self {
    case .literal(let bytes): bytes.count
    case .run(_, let count), .noise(_, let count), .words(_, let count): max(0, count)
    }
  }

  private static let vocabulary = [
    "{\"id\":", "\"name\":\"", "\",", "depends", "version", "library", "1.0", "2.37-4", "main",
    "http://", "example", "true}", " the ", "of ", "0", "42", "é", "\n",
  ].map { Array($0.utf8) }

  private static func words(_ seed: UInt64, _ count: Int) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    var result: [UInt8] = []
    result.reserveCapacity(max(0, count) + 16)
    while result.count < count {
      result += vocabulary[generator.int(below: vocabulary.count)]
    }
    return Array(result.prefix(max(0, count)))
  }

  /// Simpler bytes that a failure may show as well, the boldest first.
  ///
  /// - Parameter minimum: the fewest bytes that make sense.
  func simpler(minimum: Int) -> [ScriptBytes] {
    guard count > minimum else { return [] }
    let counts = [minimum, count / 2, count - 1].filter { $0 >= minimum && $0 < count }
    var result: [ScriptBytes] = []
    for shorter in counts where !result.contains(where: { $0.count == shorter }) {
      if shorter == 0 {
        result.append(.literal([]))
        continue
      }
      switch self {
      case .literal(let bytes): result.append(.literal(Array(bytes.prefix(shorter))))
      case .run(let byte, _): result.append(.run(byte, count: shorter))
      case .noise(let seed, _): result.append(.noise(seed: seed, count: shorter))
      case .words(let seed, _): result.append(.words(seed: seed, count: shorter))
      }
    }
    return result
  }
}
