import Testing
import TidemarkEngine

@testable import LogtoolKit

@Suite("Texts for people")
struct TextTests {
  @Test("sizes are told in the unit that fits")
  func sizes() {
    #expect(HumanText.size(0) == "0 B")
    #expect(HumanText.size(1023) == "1023 B")
    #expect(HumanText.size(1024) == "1.0 KiB")
    #expect(HumanText.size(1_048_575) == "1.0 MiB")
    #expect(HumanText.size(13_002_342) == "12.4 MiB")
    #expect(HumanText.size(3 << 40) == "3.0 TiB")
  }

  @Test("numbers have their thousands apart")
  func counts() {
    #expect(HumanText.count(0) == "0")
    #expect(HumanText.count(999) == "999")
    #expect(HumanText.count(63_440) == "63,440")
    #expect(HumanText.count(-1_000_000) == "-1,000,000")
    #expect(HumanText.count(-100) == "-100")
    #expect(HumanText.count(1, "key", "keys") == "1 key")
    #expect(HumanText.count(2, "key", "keys") == "2 keys")
  }

  @Test("durations are told in a unit that fits, up to years")
  func durations() {
    #expect(HumanText.duration(seconds: 0.44) == "0.4 s")
    #expect(HumanText.duration(seconds: 59.94) == "59.9 s")
    #expect(HumanText.duration(seconds: 59.97) == "1:00")
    #expect(HumanText.duration(seconds: 187) == "3:07")
    #expect(HumanText.duration(seconds: 3723) == "1:02:03")
    #expect(HumanText.duration(seconds: 172_799) == "47:59:59")
    #expect(HumanText.duration(seconds: 172_800) == "2 days")
    #expect(HumanText.duration(seconds: 86_400 * 30) == "30 days")
    #expect(HumanText.duration(seconds: 1e9) == "31 years")
    #expect(HumanText.duration(seconds: 1e11) == "3,168 years")
    for far in [1e12, 1e300, .infinity] {
      #expect(HumanText.duration(seconds: far) == "more than 10,000 years")
    }
  }

  @Test("lines are broken between words, and nothing is lost")
  func wrapped() {
    let words = "a word, another, \u{1b}[31mred and\u{1b}[0m extraordinarily long-winded"
    for columns in 24...90 {
      let lines = HelpText.wrapped("  " + words, columns: columns, indent: 4)
      let parts = lines.split(separator: "\n").map { $0.drop { $0 == " " } }
      #expect(parts.joined(separator: " ") == words, "\(lines)")
      #expect(lines.split(separator: "\n").allSatisfy { $0.count <= columns + 9 }, "\(lines)")
    }
    #expect(HelpText.wrapped("short", columns: 40) == "short")
    #expect(HelpText.wrapped("x " + words, columns: 200) == "x " + words)
  }

  @Test("text that could mislead on a terminal is escaped, letters of all scripts are not")
  func escapes() {
    #expect(HumanText.escaped(Array("käse/日本".utf8)) == "käse/日本")
    #expect(HumanText.escaped(Array("a\tb\nc\r\u{1b}".utf8)) == "a\\tb\\nc\\r\\x1b")
    #expect(HumanText.escaped(Array("a\\b".utf8)) == "a\\\\b")
    #expect(HumanText.escaped([0x61, 0xff, 0x00]) == "a\\xff\\x00")
    #expect(HumanText.escaped(Array("\u{202e}x\u{9b}".utf8)) == "\\xe2\\x80\\xaex\\xc2\\x9b")
    #expect(HumanText.escapedKeepingLines(Array("a\tb\\\n\u{7}".utf8)) == "a\tb\\\n\\x07")
  }

  @Test("progress tells amount, time left and rate")
  func progress() {
    let text = Progress.text(
      "importing", done: 5 << 20, total: 20 << 20, seconds: 2, unit: .bytes, note: "9 lines/s",
      columns: 120)
    #expect(
      text
        == "importing  [==        ]   25 %  5.0 MiB of 20.0 MiB  6.0 s left  2.5 MiB/s  9 lines/s"
    )
    let open = Progress.text(
      "importing", done: 1 << 10, total: nil, seconds: 1, unit: .bytes, note: "", columns: 80)
    #expect(open == "importing  1.0 KiB  1.0 KiB/s")
  }

  @Test("progress leaves out whole parts where the terminal is narrow, the time left late")
  func narrowProgress() {
    func text(_ columns: Int) -> String {
      Progress.text(
        "importing", done: 8 << 20, total: 34 << 20, seconds: 1.1, unit: .bytes,
        note: "67,641 lines/s", columns: columns)
    }
    let all = Set(text(200).split(separator: "  "))
    for columns in 0...120 {
      let narrow = text(columns)
      #expect(narrow.count <= columns)
      #expect(all.isSuperset(of: narrow.split(separator: "  ")), "\(columns): \(narrow)")
    }
    #expect(
      text(79)
        == "importing  [==        ]   23 %  8.0 MiB of 34.0 MiB  3.6 s left  7.3 MiB/s")
    #expect(text(39) == "importing   23 %  3.6 s left")
  }

  @Test("moments are sequences, dates or ages")
  func moments() {
    #expect(Moment(argument: "1000") == .sequence(1000))
    #expect(Moment(argument: "0") == .sequence(0))
    #expect(Moment(argument: "2026-09-01") == .date(Timestamp(seconds: 1_788_220_800)))
    #expect(
      Moment(argument: "2026-09-01T02:00:00+02:00") == .date(Timestamp(seconds: 1_788_220_800)))
    #expect(Moment(argument: "1d3h") == .ago(seconds: 97_200))
    #expect(Moment(argument: "90m") == .ago(seconds: 5400))
    for nonsense in [
      "", "-1", "3x", "d", "1d3", "99999999999999999999", "99999999999999999999d", "2026-13-01",
      "99999999999d",
    ] {
      #expect(Moment(argument: nonsense) == nil, "\(nonsense)")
    }
  }

  @Test("JSON text escapes what it must")
  func json() {
    let value = JSONValue.object([
      .init("a\"b", .array([.null, .bool(true), .integer(-1), .unsigned(.max)])),
      .init("text", .string("\\ \n\r\t\u{1} ü")), .bytes("key", [0xff]),
    ])
    #expect(
      value.text
        == #"{"a\"b":[null,true,-1,18446744073709551615],"text":"\\ \n\r\t\u0001 ü","#
        + #""key_base64":"/w=="}"#)
  }
}
