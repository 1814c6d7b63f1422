public import Observation

public protocol DynamicProperty {
  mutating func update()
}

extension DynamicProperty {
  public mutating func update() {}
}

@propertyWrapper
public struct State<Value>: DynamicProperty {
  private let value: Value

  public init(wrappedValue value: Value) { self.value = value }
  public init(initialValue value: Value) { self.value = value }

  public var wrappedValue: Value {
    get { value }
    nonmutating set {}
  }
  public var projectedValue: Binding<Value> { .constant(value) }
}

extension State: Sendable where Value: Sendable {}

@propertyWrapper
@dynamicMemberLookup
public struct Binding<Value> {
  private let value: Value

  public init(get: @escaping () -> Value, set: @escaping (Value) -> Void) { value = get() }
  private init(_ value: Value) { self.value = value }

  public static func constant(_ value: Value) -> Binding<Value> { Binding(value) }

  public var wrappedValue: Value {
    get { value }
    nonmutating set {}
  }
  public var projectedValue: Binding<Value> { self }

  public subscript<Subject>(
    dynamicMember keyPath: WritableKeyPath<Value, Subject>
  ) -> Binding<Subject> {
    .constant(value[keyPath: keyPath])
  }
}

public protocol EnvironmentKey {
  associatedtype Value

  static var defaultValue: Value { get }
}

public struct EnvironmentValues {
  public init() {}

  public subscript<K: EnvironmentKey>(key: K.Type) -> K.Value {
    get { K.defaultValue }
    set {}
  }

  public var scenePhase: ScenePhase { .active }
}

@propertyWrapper
public struct Environment<Value>: DynamicProperty {
  private let value: Value

  public init(_ keyPath: KeyPath<EnvironmentValues, Value>) {
    value = EnvironmentValues()[keyPath: keyPath]
  }

  public init(_ objectType: Value.Type) where Value: AnyObject & Observable {
    fatalError("a stub")
  }

  public var wrappedValue: Value { value }
}

extension Environment: Sendable where Value: Sendable {}

public enum ScenePhase: Comparable, Hashable, Sendable {
  case background
  case inactive
  case active
}

public struct Animation: Equatable, Sendable {
  public static let `default` = Animation()
}

public func withAnimation<Result>(
  _ animation: Animation? = .default, _ body: () throws -> Result
) rethrows -> Result {
  try body()
}
