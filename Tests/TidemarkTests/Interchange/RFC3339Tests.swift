import Foundation
import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@Suite("Times in RFC 3339")
struct RFC3339Tests {
  @Test(
    "text that the standard allows is read",
    arguments: [
      ("1970-01-01T00:00:00Z", 0, 0),
      ("1970-01-01t00:00:00z", 0, 0),
      ("2026-09-01T00:00:00Z", 1_788_220_800, 0),
      ("2022-02-14T16:54:30+11:00", 1_644_818_070, 0),
      ("1985-04-12T23:20:50.52Z", 482_196_050, 520_000_000),
      ("1996-12-19T16:39:57-08:00", 851_042_397, 0),
      ("1937-01-01T12:00:27.87+00:20", -1_041_337_173, 870_000_000),
      ("1969-12-31T23:59:59.999999999Z", -1, 999_999_999),
      ("2000-02-29T00:00:00-00:00", 951_782_400, 0),
      ("0000-01-01T00:00:00Z", -62_167_219_200, 0),
      ("0000-02-29T00:00:00Z", -62_162_121_600, 0),
      ("9999-12-31T23:59:59.000000001Z", 253_402_300_799, 1),
      ("2024-12-31T23:59:59+23:59", 1_735_603_259, 0),
    ])
  func reads(_ text: String, _ seconds: Int64, _ nanoseconds: UInt32) {
    #expect(
      Timestamp(rfc3339: text) == Timestamp(seconds: seconds, nanoseconds: nanoseconds))
  }

  @Test(
    "anything else is refused",
    arguments: [
      "", "2026", "2026-09-01", "2026-09-01T00:00:00", "2026-09-01 00:00:00Z",
      "2026-09-01T00:00Z", "2026-9-1T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z",
      "2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-04-31T00:00:00Z",
      "2026-01-00T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z",
      "2026-01-01T00:00:61Z", "2026-01-01T00:00:60Z", "2026-06-29T23:59:60Z",
      "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00.1234567890Z", "2026-01-01T00:00:00,5Z",
      "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+01:60", "2026-01-01T00:00:00+0100",
      "2026-01-01T00:00:00+01", "2026-01-01T00:00:00ZZ", " 2026-01-01T00:00:00Z",
      "2026-01-01T00:00:00Z ", "+026-01-01T00:00:00Z", "12026-01-01T00:00:00Z",
      "0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "2026-01-01T00:00:0٣Z",
    ])
  func refuses(_ text: String) { #expect(Timestamp(rfc3339: text) == nil) }

  @Test("a leap second stays in its day and before all that follows")
  func leapSecond() {
    let expected = Timestamp(seconds: 1_483_228_799, nanoseconds: 999_999_999)
    #expect(Timestamp(rfc3339: "2016-12-31T23:59:60Z") == expected)
    #expect(Timestamp(rfc3339: "2016-12-31T15:59:60.25-08:00") == expected)
    #expect(Timestamp(rfc3339: "2017-01-01T00:59:60+01:00") == expected)
  }

  @Test("every truncation of a time is refused")
  func truncations() {
    let text = "2026-09-01T08:30:00.250+02:00"
    for count in 0..<text.utf8.count {
      #expect(Timestamp(rfc3339: String(text.prefix(count))) == nil, "\(count) characters")
    }
  }

  @Test(
    "a time is written in UTC, with as long a fraction as it needs",
    arguments: [
      (0, 0, "1970-01-01T00:00:00Z"),
      (1_788_220_800, 250_000_000, "2026-09-01T00:00:00.25Z"),
      (-1, 999_999_999, "1969-12-31T23:59:59.999999999Z"),
      (951_827_696, 1, "2000-02-29T12:34:56.000000001Z"),
      (-62_167_219_200, 0, "0000-01-01T00:00:00Z"),
      (-62_167_219_201, 0, "0000-01-01T00:00:00Z"),
      (.min, 0, "0000-01-01T00:00:00Z"),
      (253_402_300_800, 0, "9999-12-31T23:59:59.999999999Z"),
      (.max, 999_999_999, "9999-12-31T23:59:59.999999999Z"),
    ] as [(Int64, UInt32, String)])
  func writes(_ seconds: Int64, _ nanoseconds: UInt32, _ text: String) {
    #expect(Timestamp(seconds: seconds, nanoseconds: nanoseconds).rfc3339 == text)
  }

  @Test("a date that was written is read back the same, and Foundation agrees on it")
  func roundTrip() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var chance = SeededGenerator(seed: seed)
    var calendar = Calendar(identifier: .iso8601)
    calendar.timeZone = try #require(TimeZone(secondsFromGMT: 0))
    for _ in 0..<5_000 {
      let seconds = Int64(chance.int(in: -62_167_219_200...253_402_300_799))
      let scale = [1, 1_000, 1_000_000, 1_000_000_000][chance.int(below: 4)]
      let nanoseconds = UInt32(chance.int(below: 1_000_000_000) / scale * scale)
      let time = Timestamp(seconds: seconds, nanoseconds: nanoseconds)
      let text = time.rfc3339
      #expect(Timestamp(rfc3339: text) == time, "seed \(seed): \(text)")
      // Foundation's calendar follows the Julian one before 1582.
      guard seconds > -12_000_000_000 else { continue }
      let parts = calendar.dateComponents(
        [.year, .month, .day, .hour, .minute, .second],
        from: Date(timeIntervalSince1970: Double(seconds)))
      let expected = String(
        format: "%04d-%02d-%02dT%02d:%02d:%02d", parts.year!, parts.month!, parts.day!,
        parts.hour!, parts.minute!, parts.second!)
      #expect(text.hasPrefix(expected), "seed \(seed): \(text)")
    }
  }
}
