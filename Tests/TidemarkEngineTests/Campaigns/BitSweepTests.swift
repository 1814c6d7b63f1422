import Testing
import TidemarkTestKit

@testable import TidemarkEngine

/// Short forms of campaign 4; the long one is a command.
@Suite("Damage to files")
struct BitSweepTests {
  private static let steps: [ScriptStep] = [
    .write(ScriptWrite(.put, ScriptBytes("a"), ScriptBytes("1"), labels: [ScriptBytes("x")])),
    .write(ScriptWrite(.put, ScriptBytes("b"), .words(seed: 1, count: 900))),
    .flush, .compact, .snapshot,
    .batch([
      ScriptWrite(.put, ScriptBytes("c"), .noise(seed: 2, count: 300)),
      ScriptWrite(.delete, ScriptBytes("a")),
    ]),
    .write(ScriptWrite(.touch, ScriptBytes("b"))), .flush,
    .write(ScriptWrite(.put, ScriptBytes("d"), .noise(seed: 3, count: 200))),
    .write(ScriptWrite(.put, ScriptBytes("e"), ScriptBytes("last"))),
  ]

  @Test(
    "a store whose files are harmed answers rightly or says that it is damaged",
    arguments: [true, false])
  func damage(isClosed: Bool) throws {
    let sweep = try BitSweep(Script(seed: 7, steps: Self.steps), isClosed: isClosed)
    var generator = SeededGenerator(seed: isClosed ? 1 : 2)
    var report = BitSweep.Report()
    for _ in 0..<250 {
      try sweep.run(sweep.flip(generator.int(below: sweep.bitCount)), &report)
    }
    for _ in 0..<60 {
      try sweep.run(sweep.cut(generator.int(below: sweep.byteCount)), &report)
    }
    for _ in 0..<120 { try sweep.run(sweep.somethingElse(&generator), &report) }
    #expect(report.refused > 0)
    #expect(report.whole > 0)
    #expect(report.byKind.count == 9, "\(report.byKind)")
  }
}

extension BitSweepTests {
  @Test("the long campaign's store is large enough and has everything", arguments: [true, false])
  func sample(isClosed: Bool) throws {
    let script = Script(seed: 0, steps: BitSweep.sampleSteps)
    let files = try BitSweep(script, isClosed: isClosed).files
    #expect(files.reduce(0) { $0 + $1.bytes.count } >= 64 << 10)
    #expect(files.contains { $0.path.hasSuffix(".idx") })
    let headers = try files.filter { $0.path.hasSuffix(".seg") }.map {
      try SegmentHeader(decodingPage: Array($0.bytes.prefix(4096)).rawSpan)
    }
    #expect(headers.count == 2)
    #expect(headers.contains { $0.dictionary != nil })
  }
}
