import Testing
import TidemarkSync
import TidemarkTestKit

@Suite("Server-sent events")
struct ServerEventParserTests {
  private func events(_ pieces: [[UInt8]], limit: Int = 64) throws -> [[String]] {
    var parser = ServerEventParser(limit: limit)
    var events: [[String]] = []
    for piece in pieces {
      try parser.feed(piece) { event in
        events.append(
          [event.name, event.data, event.id].map { String(decoding: $0, as: UTF8.self) })
      }
    }
    return events
  }

  @Test("events end with an empty line, whatever the line ends are")
  func lines() throws {
    for end in ["\n", "\r", "\r\n"] {
      let text = [
        "\u{feff}: a comment", "event: poke", "data: 1", "data:2", "id: 7", "", "data", "", ":",
        "event: none", "", "retry: 5", "unknown: x", "data: 3", "", "data: unfinished",
      ].joined(separator: end)
      let found = try events([Array(text.utf8)])
      #expect(
        found == [["poke", "1\n2", "7"], ["", "", "7"], ["", "3", "7"]], "\(end.debugDescription)")
    }
  }

  @Test("it does not matter how the bytes are cut")
  func pieces() throws {
    var generator = SeededGenerator(seed: 3)
    let alphabet = Array("\r\n: deventidata1\u{feff}".utf8)
    for round in 0..<300 {
      let bytes = (0..<60).compactMap { _ in generator.pick(alphabet) }
      let whole = try events([bytes])
      var pieces: [[UInt8]] = []
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = generator.int(in: 1...rest.count)
        pieces.append(Array(rest.prefix(count)))
        rest = rest.dropFirst(count)
      }
      #expect(try events(pieces) == whole, "round \(round)")
    }
  }

  @Test("lines and events without end are refused")
  func endless() {
    #expect(throws: PeerError.self) { try events([[UInt8](repeating: 0x61, count: 65)]) }
    #expect(throws: PeerError.self) {
      try events([Array(String(repeating: "data: 0123456789\n", count: 10).utf8)])
    }
    #expect(throws: Never.self) {
      try events([Array(String(repeating: ": 0123456789\n", count: 1000).utf8)])
    }
  }
}
