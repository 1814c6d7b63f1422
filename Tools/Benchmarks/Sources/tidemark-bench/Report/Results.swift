/// Everything that was measured at one size.
struct Results {
  var n: Int
  private var measures: [String: [EngineName: [Measure]]] = [:]
  private var limits: [String: [Double]] = [:]
  /// Settings in the order in which they were first seen, with the stages that have them.
  private var settingStages: [EngineName: [(text: String, stages: [String])]] = [:]
  private(set) var failures: [String] = []

  init(n: Int) { self.n = n }

  mutating func add(_ measure: Measure, _ engine: EngineName) {
    measures[measure.row, default: [:]][engine, default: []].append(measure)
  }

  mutating func add(limit measure: Measure) {
    limits[measure.row, default: []].append(measure.value)
  }

  mutating func add(settings: [String], _ engine: EngineName, _ stage: Stage) {
    var known = settingStages[engine] ?? []
    for setting in settings {
      let place = known.firstIndex { $0.text == setting } ?? known.count
      if place == known.count { known.append((setting, [])) }
      if !known[place].stages.contains(stage.rawValue) {
        known[place].stages.append(stage.rawValue)
      }
    }
    settingStages[engine] = known
  }

  /// How an engine was configured; what holds for some stages only names them.
  func settings(_ engine: EngineName) -> [String]? {
    guard let settings = settingStages[engine] else { return nil }
    let most = settings.map(\.stages.count).max() ?? 0
    return settings.map { setting in
      if setting.stages.count == most { return setting.text }
      // A list of most stages says less than that the others are named.
      let stages =
        setting.stages.count * 3 > most ? "else" : setting.stages.joined(separator: ", ")
      return "\(setting.text) (\(stages))"
    }
  }

  mutating func add(failure: String) { failures.append(failure) }

  func statistics(_ row: String, _ engine: EngineName) -> Statistics? {
    measures[row]?[engine].map { Statistics($0.map(\.value)) }
  }

  func median(_ row: String, _ engine: EngineName) -> Double? {
    statistics(row, engine)?.median
  }

  /// Microseconds of processor time an operation.
  func processor(_ row: String, _ engine: EngineName) -> Double? {
    guard let own = measures[row]?[engine]?.compactMap(\.processor), !own.isEmpty else {
      return nil
    }
    return Statistics.median(own)
  }

  /// The medians of the further figures.
  func more(_ row: String, _ engine: EngineName) -> [String: Double] {
    var values: [String: [Double]] = [:]
    for measure in measures[row]?[engine] ?? [] {
      for (name, value) in measure.more ?? [:] { values[name, default: []].append(value) }
    }
    return values.mapValues(Statistics.median)
  }

  func limit(_ name: String) -> Double? { limits[name].map(Statistics.median) }

  var limitStatistics: [String: Statistics] { limits.mapValues { Statistics($0) } }

  /// The peer with the best figure in a row.
  func bestPeer(_ row: Row) -> (engine: EngineName, value: Double)? {
    let peers = EngineName.allCases.filter { $0 != .tidemark && $0 != .empty }
    let figures = peers.compactMap { engine in
      median(row.id, engine).map { (engine: engine, value: $0) }
    }
    return row.moreIsBetter
      ? figures.max { $0.value < $1.value } : figures.min { $0.value < $1.value }
  }

  /// The engines that have a figure in a row.
  func engines(_ row: String) -> [EngineName] {
    EngineName.allCases.filter { measures[row]?[$0] != nil }
  }
}
