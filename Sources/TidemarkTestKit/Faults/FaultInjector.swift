/// Decides for each call which fault of the plan befalls it.
struct FaultInjector: Sendable {
  private var plan = FaultPlan.none
  private var seen: [Int] = []
  private var fired: [Int] = []

  var current: FaultPlan {
    get { plan }
    set {
      plan = newValue
      seen = [Int](repeating: 0, count: newValue.rules.count)
      fired = seen
    }
  }

  mutating func fault(
    for call: SimulatedCall, _ generator: inout SeededGenerator
  ) -> Fault? {
    var result: Fault?
    for (index, rule) in plan.rules.enumerated() where rule.matches(call) {
      seen[index] += 1
      if fired[index] >= rule.times { continue }
      let isDue =
        switch rule.trigger {
        case .call(let number): seen[index] >= number
        case .chance(let probability): generator.chance(probability)
        }
      guard isDue, result == nil else { continue }
      fired[index] += 1
      result = rule.fault
    }
    return result
  }
}
