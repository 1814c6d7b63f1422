import Foundation

/// All engines and stages at one size, run by run.
struct Campaign {
  let directory: String
  let n: Int
  let runs: Int
  let valueBytes: Int
  let documents: String?
  let repository: String?
  let engines: [EngineName]
  let rows: Set<String>
  private(set) var results: Results

  init(
    directory: String, n: Int, runs: Int, valueBytes: Int, documents: String?,
    repository: String?, engines: [EngineName], rows: Set<String>
  ) {
    self.directory = directory
    self.n = n
    self.runs = runs
    self.valueBytes = valueBytes
    self.documents = documents
    self.repository = repository
    self.engines = engines
    self.rows = rows
    results = Results(n: n)
  }

  /// - Parameter progress: is shown what there is so far, after each engine.
  mutating func run(_ progress: (Results) throws -> Void) rethrows {
    for run in 0..<runs {
      measureLimits()
      // Everybody is first once, so that nobody always finds the machine as another left it.
      for turn in engines.indices {
        measure(engines[(turn + run) % engines.count], run)
        try progress(results)
      }
    }
  }

  private mutating func measureLimits() {
    let output = ChildProcess.run(["limits", directory])
    for line in output.lines { if let measure = line.measure { results.add(limit: measure) } }
    if let failure = output.failure { results.add(failure: "limits: \(failure)") }
  }

  private func path(_ place: Stage.Place) -> String { "\(directory)/\(place.rawValue)" }

  private func remove(_ place: Stage.Place) {
    try? FileManager.default.removeItem(atPath: path(place))
  }

  private mutating func measure(_ engine: EngineName, _ run: Int) {
    defer { for place in [Stage.Place.fresh, .compacted, .scratch] { remove(place) } }
    var broken: Set<Stage.Place> = []
    for stage in Stage.needed(for: rows, engine) {
      guard !broken.contains(stage.place) || stage.begins || stage.source != nil else { continue }
      do {
        try prepare(stage)
      } catch {
        results.add(failure: "\(engine.rawValue) \(stage.rawValue): \(error)")
        continue
      }
      tell("run \(run + 1) of \(runs), \(n) records, \(engine.rawValue): \(stage.rawValue)")
      guard !measure(stage, engine, run) else { continue }
      broken.insert(stage.place)
    }
  }

  private func tell(_ text: String) {
    FileHandle.standardError.write(Data((text + "\n").utf8))
  }

  private func prepare(_ stage: Stage) throws {
    if stage.begins { remove(stage.place) }
    if let source = stage.source { try Disk.copy(path(source), to: path(stage.place)) }
    // Pages that others wrote are none of the next one's business.
    sync()
  }

  /// - Returns: whether it went well.
  private mutating func measure(_ stage: Stage, _ engine: EngineName, _ run: Int) -> Bool {
    let order = ChildOrder(
      engine: engine, stage: stage, path: path(stage.place), n: n, valueBytes: valueBytes,
      documents: documents, run: run, repository: repository)
    guard let text = try? order.text() else { return false }
    let output = ChildProcess.run(["child", text])
    for line in output.lines {
      if let measure = line.measure, rows.contains(measure.row) { results.add(measure, engine) }
      if let settings = line.settings { results.add(settings: settings, engine, stage) }
    }
    // Being killed is what that one is for.
    if stage == .kill { return output.wasKilled }
    if let failure = output.failure {
      results.add(failure: "\(engine.rawValue) \(stage.rawValue): \(failure)")
      return false
    }
    return true
  }
}
