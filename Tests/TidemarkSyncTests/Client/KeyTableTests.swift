import Testing
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync

@Suite("Tables of keys")
struct KeyTableTests {
  @Test("a table of keys does what a dictionary does", arguments: 1...20 as ClosedRange<UInt64>)
  func model(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var table = KeyTable(seed: seed)
    var sequences: [[UInt8]: UInt64] = [:]
    var sent: Set<[UInt8]> = []
    let variety = [20, 300, 5_000][generator.int(below: 3)]
    for step in 1...3_000 {
      let number = generator.int(below: variety)
      let key = number == 0 ? [] : [UInt8](repeating: 1, count: number % 40) + "\(number)".utf8
      if generator.int(below: 2) == 0 {
        let isSent = generator.int(below: 2) == 0
        table.note(key, UInt64(step), isSent: isSent)
        sequences[key] = UInt64(step)
        if isSent { sent.insert(key) }
      }
      if generator.int(below: 1_000) == 0 {
        table.removeAll()
        sequences = [:]
        sent = []
      }
      #expect(table[key] == sequences[key], "seed \(seed)")
      #expect(table.sends(key) == sent.contains(key), "seed \(seed)")
    }
  }
}
