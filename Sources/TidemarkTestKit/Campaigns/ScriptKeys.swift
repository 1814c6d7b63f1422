/// The keys of a script: a growing set, with neighbours that were never written.
struct ScriptKeys: Sendable {
  private let style: ScriptProfile.Keys
  private var known: [ScriptBytes]
  private var made = 0

  init(_ style: ScriptProfile.Keys, count: Int, _ generator: inout SeededGenerator) {
    self.style = style
    known = []
    for _ in 0..<max(1, count) { known.append(make(style, &generator)) }
  }

  /// A key: mostly a known one, sometimes a new one, sometimes one just beside a known one.
  mutating func any(_ generator: inout SeededGenerator) -> ScriptBytes {
    let chance = generator.int(below: 100)
    if chance < 6 {
      let key = make(style, &generator)
      known.append(key)
      return key
    }
    let key = generator.pick(known) ?? ScriptBytes("k")
    return chance < 12 ? Self.neighbour(of: key, &generator) : key
  }

  private static func neighbour(
    of key: ScriptBytes, _ generator: inout SeededGenerator
  ) -> ScriptBytes {
    var bytes = key.bytes
    // Long keys stay short in the script's text.
    guard bytes.count < 100 else {
      return .run(bytes[0], count: min(65_535, bytes.count + generator.int(in: -1...1)))
    }
    switch generator.int(below: 4) {
    case 0: bytes.append(0)
    case 1 where bytes.count > 1: bytes.removeLast()
    case 2: bytes[bytes.count - 1] &+= 1
    default: bytes[bytes.count - 1] &-= 1
    }
    return .literal(bytes)
  }

  private mutating func make(
    _ style: ScriptProfile.Keys, _ generator: inout SeededGenerator
  ) -> ScriptBytes {
    made += 1
    switch style {
    case .short: return ScriptBytes("k\(generator.int(below: 10_000))")
    case .tiny:
      let bytes = (0..<generator.int(in: 1...2)).map { _ in
        generator.pick([0, 1, 0x2f, 0x41, 0x42, 0x7f, 0x80, 0xfe, 0xff] as [UInt8]) ?? 0
      }
      return .literal(bytes)
    case .sharedPrefixes:
      let depth = generator.int(in: 1...6)
      let path = (0..<depth).map { "level\($0)/\(generator.int(below: 3))" }
      return ScriptBytes("tenant/" + path.joined(separator: "/"))
    case .nonASCII: return Self.word(&generator)
    case .huge:
      let lengths = [65_535, 65_534, 4096, 1000, generator.int(in: 300...65_535)]
      return .run(
        UInt8(0x61 + generator.int(below: 3)), count: generator.pick(lengths) ?? 1000)
    case .mixed:
      let styles: [ScriptProfile.Keys] = [
        .short, .short, .short, .tiny, .sharedPrefixes, .sharedPrefixes, .nonASCII,
      ]
      if generator.chance(0.01) { return make(.huge, &generator) }
      return make(generator.pick(styles) ?? .short, &generator)
    }
  }

  /// Letters whose spellings, lengths or orders have fooled others, and bytes that are no text.
  private static func word(_ generator: inout SeededGenerator) -> ScriptBytes {
    let parts: [[UInt8]] = [
      Array("\u{e9}".utf8), Array("e\u{301}".utf8), Array("ß".utf8), Array("SS".utf8),
      Array("İ".utf8), Array("i\u{307}".utf8), Array("日本".utf8), Array("한".utf8),
      Array("\u{1112}\u{1161}\u{11ab}".utf8), Array("👩‍👧".utf8), Array("שלום".utf8),
      Array("\u{feff}".utf8), Array("\u{fffd}".utf8), [0xc3, 0x28], [0xff, 0xfe],
      [0xed, 0xa0, 0x80],
      [0x00], [0x0a], [0x22, 0x5c],
    ]
    var bytes: [UInt8] = []
    for _ in 0..<generator.int(in: 1...3) { bytes += generator.pick(parts) ?? [] }
    return .literal(bytes)
  }
}
