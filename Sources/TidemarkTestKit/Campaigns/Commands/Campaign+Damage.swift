internal import TidemarkEngine

extension Campaign {
  /// How many seeds share the bits of the store between them.
  static let parts = 1000

  /// Flips and cuts what falls to the seed, and does something else to the files now and then.
  /// - Parameters:
  ///   - parts: how many seeds share the bits between them.
  ///   - others: how often something else is done.
  func bits(
    _ script: Script, _ configuration: EngineConfiguration = .campaign,
    parts: Int = Self.parts, others: Int = 20, unless shouldStop: () -> Bool = { false }
  ) throws -> CampaignReport {
    let part = Int(script.seed % UInt64(parts))
    var total = BitSweep.Report()
    for isClosed in [true, false] {
      let sweep = try BitSweep(
        script.withSeed(0), isClosed: isClosed, configuration: configuration)
      for bit in stride(from: part, to: sweep.bitCount, by: parts) where !shouldStop() {
        try sweep.run(sweep.flip(bit), &total)
      }
      for length in stride(from: part, to: sweep.byteCount, by: parts) where !shouldStop() {
        try sweep.run(sweep.cut(length), &total)
      }
      var generator = SeededGenerator(seed: script.seed)
      for _ in 0..<others where !shouldStop() {
        try sweep.run(sweep.somethingElse(&generator), &total)
      }
    }
    var report = CampaignReport()
    report.runs = total.damages
    report.statesChecked = total.statesChecked
    report.notes = total.byKind
    report.notes["openings refused"] = total.refused
    report.notes["stores whole"] = total.whole
    report.notes["ends of an open log taken back"] = total.shortened
    report.notes["places named by verify"] = total.named
    report.traceHash = UInt64(total.statesChecked) &* 31 &+ UInt64(total.refused)
    return report
  }
}

extension Campaign {
  /// Does each kind of work while 3, 10 and 30 % of the reads fail, and while all of them do from
  /// some read on.
  func reads(
    _ script: Script, _ configuration: EngineConfiguration = .campaign,
    unless shouldStop: () -> Bool = { false }
  ) throws -> CampaignReport {
    var total = ReadFaultSweep.Report()
    var generator = SeededGenerator(seed: script.seed)
    for isClosed in [true, false] {
      let sweep = try ReadFaultSweep(script, isClosed: isClosed, configuration: configuration)
      for work in ReadFaultSweep.Work.allCases {
        let first = ReadFaultSweep.Failing.from(generator.int(in: 1...40))
        for failing in [.chance(0.03), .chance(0.1), .chance(0.3), first] where !shouldStop() {
          try sweep.run(work, failing, seed: generator.next(), &total)
        }
      }
    }
    var report = CampaignReport()
    report.runs = total.runs
    report.statesChecked = total.runs - total.refused
    report.injected = total.injected
    report.notes = ["refused": total.refused, "losses told": total.told, "whole": total.whole]
    report.traceHash = UInt64(total.whole) &* 31 &+ UInt64(total.told)
    return report
  }
}

extension Script {
  fileprivate func withSeed(_ seed: UInt64) -> Script { Script(seed: seed, steps: steps) }
}

extension BitSweep {
  /// Makes a store with compacted segments, one of them with a dictionary, a sorted run, and
  /// segments after it.
  package static var sampleSteps: [ScriptStep] {
    func put(_ number: Int, _ value: ScriptBytes) -> ScriptStep {
      let labels = [ScriptBytes("label:\(number % 5)"), ScriptBytes("all")]
      return .write(
        ScriptWrite(.put, ScriptBytes("key \(number)"), value, labels: [labels[number % 2]]))
    }
    var steps: [ScriptStep] = []
    // Values much like each other, so that little space holds enough to train a dictionary on.
    for number in 0..<24 {
      steps.append(put(number, .words(seed: UInt64(number % 3), count: 1200)))
    }
    steps += [.compact, .write(ScriptWrite(.delete, ScriptBytes("key 3"))), .snapshot]
    for number in 18..<24 { steps.append(put(number, .noise(seed: UInt64(number), count: 400))) }
    steps += [
      .write(ScriptWrite(.touch, ScriptBytes("key 21"))), .flush,
      .batch([
        ScriptWrite(.put, ScriptBytes("key 7"), ScriptBytes("a")),
        ScriptWrite(.delete, ScriptBytes("key 8")),
        ScriptWrite(.put, ScriptBytes("new"), ScriptBytes("b"), labels: [ScriptBytes("all")]),
      ]),
      put(60, .noise(seed: 1, count: 4000)), .flush, put(61, .noise(seed: 2, count: 2000)),
      put(62, .noise(seed: 3, count: 300)),
    ]
    return steps
  }
}
