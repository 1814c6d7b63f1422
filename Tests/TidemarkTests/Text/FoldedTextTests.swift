import Foundation
import Testing
import Tidemark

@Suite("Folded text")
struct FoldedTextTests {
  private func folded(_ text: String) -> String {
    String(decoding: FoldedText(text).bytes, as: UTF8.self)
  }

  @Test(
    "case and accents make no difference in the scripts whose marks are dropped",
    arguments: [
      ("Ёлка", "елка"), ("Йод", "иод"), ("Ångström", "angstrom"), ("İstanbul", "istanbul"),
      ("Straße", "STRASSE"), ("\u{E9}", "e\u{301}"), ("ΣΊΣΥΦΟΣ", "σισυφος"), ("ᾳ", "ΑΙ"),
      ("שָׁלוֹם", "שלום"), ("مُحَمَّد", "محمد"), ("ﬁn", "FIN"), ("Ǆ", "ǆ"),
    ])
  func equal(_ one: String, _ other: String) {
    #expect(FoldedText(one) == FoldedText(other))
  }

  @Test(
    "marks that make another letter stay",
    arguments: [
      ("が", "か"), ("ไม่", "ไม"),
      ("हिन्दी", "हनद"), ("ぱ", "は"), ("ı", "i"), ("þ", "th"), ("カ", "か"), ("1\u{200B}2", "12"),
    ])
  func different(_ one: String, _ other: String) {
    #expect(FoldedText(one) != FoldedText(other))
  }

  @Test("the bytes are the same wherever they are made")
  func bytes() {
    #expect(FoldedText("Zoë 東京 9").bytes == Array("zoe 東京 9".utf8))
    #expect(FoldedText("\u{AC01}").bytes == Array("\u{1100}\u{1161}\u{11A8}".utf8))
    #expect(FoldedText("か\u{3099}").bytes == Array("\u{304C}".utf8))
    #expect(FoldedText("か\u{323}\u{3099}").bytes == Array("\u{304C}\u{323}".utf8))
    #expect(FoldedText.unicodeVersion == 0x01_0F_00_00)
  }

  @Test("texts that Unicode's own files call equivalent, or alike but for case, are equal")
  func samples() throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "Fixtures/folding.txt")
    var count = 0
    for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    where !line.hasPrefix("#") {
      let texts = line.split(separator: ";").map { field in
        var text = ""
        for code in field.split(separator: " ") {
          guard let scalar = UInt32(code, radix: 16).flatMap(Unicode.Scalar.init) else { continue }
          text.unicodeScalars.append(scalar)
        }
        return text
      }
      try #require(texts.count == 2 && !texts[0].isEmpty && !texts[1].isEmpty)
      #expect(FoldedText(texts[0]) == FoldedText(texts[1]), "\(line)")
      count += 1
    }
    #expect(count > 2_000)
  }

  @Test("folding what is folded changes nothing, for every scalar")
  func idempotent() {
    for value in 0...UInt32(0x10FFFF) {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let once = folded(String(scalar))
      if folded(once) != once { Issue.record("U+\(String(value, radix: 16))") }
    }
  }

  @Test("marks are ordered by their class before they are compared, however many there are")
  func manyMarks() {
    let above = String(repeating: "\u{301}", count: 50_000)
    let below = String(repeating: "\u{323}", count: 50_000)
    #expect(FoldedText("か" + above + below) == FoldedText("か" + below + above))
    #expect(FoldedText("か" + above).bytes.count == 100_003)
    #expect(folded("a" + above + below) == "a")
  }

  @Test("a prefix and a part are found in what is folded")
  func parts() {
    let text = FoldedText("Die Straße von Ålesund")
    #expect(text.hasPrefix(FoldedText("die STRASS")))
    #expect(!text.hasPrefix(FoldedText("straße")))
    #expect(text.contains(FoldedText("alesund")) && text.contains(FoldedText("E V")))
    #expect(text.contains(FoldedText("")) && text.hasPrefix(FoldedText("")))
    #expect(!text.contains(FoldedText("alesundx")) && !FoldedText("").contains(text))
    #expect(FoldedText("aaab").contains(FoldedText("aab")))
  }

  @Test("sort keys order by the folded text, and equal ones by their own bytes")
  func sortKeys() {
    let sorted = ["", "\0", "\0a", "Ab", "ab", "áb", "ab c", "abc", "Ende", "Ёж", "東"]
    let keys = sorted.map { FoldedText($0).sortKey(of: $0) }
    for (one, other) in zip(keys, keys.dropFirst()) {
      #expect(one.lexicographicallyPrecedes(other))
    }
    let folded = sorted.map { FoldedText($0) }
    for (one, other) in zip(folded, folded.dropFirst()) { #expect(one <= other) }
  }
}
