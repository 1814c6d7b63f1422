/// Looks for the shortest script that still fails.
///
/// First steps are left out, many at a time and then one by one; then what is left is made
/// simpler: fewer writes in a batch, shorter values and keys, fewer labels and conditions. (The
/// first part is delta debugging as Zeller and Hildebrandt describe it.)
/// - Parameters:
///   - script: a script that fails.
///   - attempts: how often `fails` is called at most.
///   - fails: runs a script on a new store and says whether it fails in the same way.
/// - Returns: the simplest script found for which `fails` said yes; `script` itself if there is
///   none.
public func shrink(
  _ script: Script, attempts: Int = 3000, fails: (Script) throws -> Bool
) rethrows -> Script {
  var shrinker = Shrinker(script, attempts: attempts)
  var changed = true
  while changed, shrinker.attempts > 0 {
    changed = try shrinker.removeSteps(fails)
    changed = try shrinker.simplifySteps(fails) || changed
  }
  return shrinker.best
}

private struct Shrinker {
  var best: Script
  var attempts: Int

  init(_ script: Script, attempts: Int) {
    best = script
    self.attempts = attempts
  }

  /// Takes a candidate if it still fails.
  private mutating func take(
    _ steps: [ScriptStep], _ fails: (Script) throws -> Bool
  ) rethrows -> Bool {
    guard attempts > 0 else { return false }
    attempts -= 1
    let candidate = Script(seed: best.seed, steps: steps)
    guard try fails(candidate) else { return false }
    best = candidate
    return true
  }

  mutating func removeSteps(_ fails: (Script) throws -> Bool) rethrows -> Bool {
    var changed = false
    var size = max(1, best.steps.count / 2)
    while true {
      // From the end, since what comes after the failure is never needed.
      var end = best.steps.count
      while end > 0 {
        let start = max(0, end - size)
        var steps = best.steps
        steps.removeSubrange(start..<end)
        if try take(steps, fails) { changed = true }
        end = min(start, best.steps.count)
      }
      if size == 1 { return changed }
      size = max(1, size / 2)
    }
  }

  mutating func simplifySteps(_ fails: (Script) throws -> Bool) rethrows -> Bool {
    var changed = false
    for index in best.steps.indices {
      var improved = true
      while improved, attempts > 0 {
        improved = false
        for simpler in best.steps[index].simpler {
          var steps = best.steps
          steps[index] = simpler
          if try take(steps, fails) {
            improved = true
            changed = true
            break
          }
        }
      }
    }
    return changed
  }
}

extension ScriptStep {
  /// Steps that say less, the boldest first.
  fileprivate var simpler: [ScriptStep] {
    switch self {
    case .write(let write): write.simpler.map { .write($0) }
    case .batch(let writes): Self.simpler(writes)
    case .compareAndPut(let write, let expectation):
      [.write(write)] + write.simpler.map { .compareAndPut($0, expectation) }
    case .scan(let query): query.simpler.map { .scan($0) }
    case .view(let point, let query):
      [.scan(query)] + query.simpler.map { .view(point, $0) }
    case .get(let key): key.simpler(minimum: 1).map { .get($0) }
    case .history(let key): key.simpler(minimum: 1).map { .history($0) }
    case .loseRuns, .kill, .powerCut: [.closeAndReopen]
    case .compactDroppingHistory: [.compact]
    default: []
    }
  }

  private static func simpler(_ writes: [ScriptWrite]) -> [ScriptStep] {
    if writes.count == 1 {
      return [.write(writes[0])] + writes[0].simpler.map { .batch([$0]) }
    }
    let half = writes.count / 2
    var result: [ScriptStep] = [
      .batch(Array(writes[half...])), .batch(Array(writes[..<half])),
    ]
    for index in writes.indices {
      var fewer = writes
      fewer.remove(at: index)
      result.append(.batch(fewer))
    }
    for index in writes.indices {
      for write in writes[index].simpler {
        var changed = writes
        changed[index] = write
        result.append(.batch(changed))
      }
    }
    return result
  }
}

extension ScriptWrite {
  fileprivate var simpler: [ScriptWrite] {
    var result: [ScriptWrite] = []
    func add(_ change: (inout ScriptWrite) -> Void) {
      var write = self
      change(&write)
      result.append(write)
    }
    if !labels.isEmpty {
      add { $0.labels = [] }
      for index in labels.indices { add { $0.labels.remove(at: index) } }
    }
    if hash.count > 0 { add { $0.hash = .literal([]) } }
    for value in value.simpler(minimum: 0) { add { $0.value = value } }
    for key in key.simpler(minimum: 1) { add { $0.key = key } }
    return result
  }
}

extension ModelQuery {
  fileprivate var simpler: [ModelQuery] {
    var result: [ModelQuery] = []
    func add(_ change: (inout ModelQuery) -> Void) {
      var query = self
      change(&query)
      if query != self { result.append(query) }
    }
    add { $0 = ModelQuery() }
    add { $0.prefix = [] }
    add { $0.from = nil }
    add { $0.until = nil }
    add { $0.all = [] }
    add { $0.any = [] }
    add { $0.none = [] }
    add { $0.order = .key }
    add { $0.isReversed = false }
    add { $0.limit = nil }
    return result
  }
}
