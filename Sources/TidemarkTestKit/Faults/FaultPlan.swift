public import TidemarkEngine

/// Which calls on a ``SimulatedFileSystem`` go wrong, and how.
///
/// ```swift
/// disk.plan = .powerCut(atCall: 7)                            // in the 7th mutating call from now
/// disk.plan = .error(.ENOSPC, atCall: 3, of: [.allocate], sticky: true)
/// disk.plan = [FaultRule(.shortTransfer, .chance(0.2)), FaultRule(.bitFlipOnRead, .call(9))]
/// disk.plan = .none                                           // the cause is gone
/// ```
/// Calls are counted from the moment at which the plan is set. Of several rules that come due in
/// one call, the first is carried out.
public struct FaultPlan: Sendable, Hashable, ExpressibleByArrayLiteral {
  /// The rules, the more important first.
  public var rules: [FaultRule]

  /// Creates a plan.
  public init(_ rules: [FaultRule] = []) { self.rules = rules }

  /// Creates a plan from rules.
  public init(arrayLiteral elements: FaultRule...) { rules = elements }

  /// Nothing goes wrong.
  public static let none = FaultPlan()

  /// The power goes off in a mutating call.
  /// - Parameter call: which, counted from 1.
  public static func powerCut(atCall call: Int) -> FaultPlan {
    [FaultRule(.powerCut, .call(call), calls: .mutating)]
  }

  /// The process is killed in a mutating call.
  /// - Parameter call: which, counted from 1.
  public static func processKill(atCall call: Int) -> FaultPlan {
    [FaultRule(.processKill, .call(call), calls: .mutating)]
  }

  /// A call fails.
  /// - Parameters:
  ///   - number: the error.
  ///   - call: which call, counted from 1 among those of `operations`.
  ///   - operations: which calls count; nil for all.
  ///   - sticky: whether all later ones fail as well.
  public static func error(
    _ number: SimulatedErrno, atCall call: Int,
    of operations: Set<FileSystemError.Operation>? = nil,
    sticky: Bool = false
  ) -> FaultPlan {
    let calls = operations.map { FaultRule.Calls.only($0) } ?? .any
    return [FaultRule(.error(number), .call(call), calls: calls, times: sticky ? .max : 1)]
  }
}

/// One fault and the calls that it befalls.
public struct FaultRule: Sendable, Hashable {
  /// Which calls a rule looks at. Calls for which its fault means nothing are never among them.
  public enum Calls: Sendable, Hashable {
    /// All.
    case any
    /// Calls that can change what is on the disk, syncs among them.
    case mutating
    /// Calls of certain operations.
    case only(Set<FileSystemError.Operation>)
  }

  /// At which of these calls it comes due.
  public enum Trigger: Sendable, Hashable {
    /// At one, counted from 1, and at every later one as often as ``FaultRule/times`` allows.
    case call(Int)
    /// At each with this probability.
    case chance(Double)
  }

  /// The fault that is injected.
  public var fault: Fault
  /// When.
  public var trigger: Trigger
  /// In which calls.
  public var calls: Calls
  /// Only in calls on paths that contain this text; nil for all.
  public var path: String?
  /// How often at most; `.max` for ever.
  public var times: Int

  /// Creates a rule.
  /// - Parameters:
  ///   - fault: what goes wrong.
  ///   - trigger: when.
  ///   - calls: in which calls; by default in all for which the fault means something.
  ///   - path: only in calls on paths that contain this text.
  ///   - times: how often at most, `.max` for ever; by default once for `.call` and for ever for
  ///     `.chance`.
  public init(
    _ fault: Fault, _ trigger: Trigger, calls: Calls = .any, path: String? = nil,
    times: Int? = nil
  ) {
    self.fault = fault
    self.trigger = trigger
    self.calls = calls
    self.path = path
    if let times {
      self.times = times
    } else if case .call = trigger {
      self.times = 1
    } else {
      self.times = .max
    }
  }

  func matches(_ call: SimulatedCall) -> Bool {
    switch calls {
    case .any: break
    case .mutating: if !call.isMutating { return false }
    case .only(let operations): if !operations.contains(call.operation) { return false }
    }
    if let path, !call.path.contains(path) { return false }
    return fault.applies(to: call)
  }
}
