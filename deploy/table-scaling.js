/**
 * With `tableBilling: provisioned`: capacity of every table and index follows what is used of it, reads and writes apart. One
 * scaling target and one policy for each, so this is made and not written. osls reads functions from .js only.
 */
const TABLES = { ConnectionsTable: ['by_desired_state', 'by_owner'], WorkersTable: [], MessagesTable: [] };
const UNITS = ['Read', 'Write'];

/** @param {{ resolveVariable: (address: string) => Promise<string> }} osls */
export async function scaling({ resolveVariable }) {
  const names = ['tableBilling', 'tableCapacityMin', 'tableCapacityMax', 'tableUtilization'];
  const [billing, min, max, utilization] = await Promise.all(names.map((name) => resolveVariable(`param:${name}`)));
  if (billing !== 'provisioned') return {};
  const parts = Object.entries(TABLES).flatMap(([table, indexes]) => [
    { name: table, table, index: undefined },
    ...indexes.map((index) => ({ name: `${table}${camel(index)}`, table, index })),
  ]);
  const resources = parts.flatMap((part) => UNITS.flatMap((unit) => scaled(part, unit, { min, max, utilization })));
  return { Resources: Object.fromEntries(resources) };
}

function scaled({ name, table, index }, unit, { min, max, utilization }) {
  const id = `${name}${unit}Scaling`;
  const path = index === undefined ? '' : `/index/${index}`;
  const target = {
    ServiceNamespace: 'dynamodb',
    ScalableDimension: `dynamodb:${index === undefined ? 'table' : 'index'}:${unit}CapacityUnits`,
    ResourceId: { 'Fn::Sub': `table/\${${table}}${path}` },
    MinCapacity: min,
    MaxCapacity: max,
  };
  const policy = {
    PolicyName: id,
    PolicyType: 'TargetTrackingScaling',
    ScalingTargetId: { Ref: id },
    TargetTrackingScalingPolicyConfiguration: {
      PredefinedMetricSpecification: { PredefinedMetricType: `DynamoDB${unit}CapacityUtilization` },
      TargetValue: utilization,
      // Growing must be quick, and each shrinking is one of the few that DynamoDB grants in a day.
      ScaleOutCooldown: 60,
      ScaleInCooldown: 900,
    },
  };
  return [
    [id, { Type: 'AWS::ApplicationAutoScaling::ScalableTarget', Properties: target }],
    [`${id}Policy`, { Type: 'AWS::ApplicationAutoScaling::ScalingPolicy', Properties: policy }],
  ];
}

function camel(name) {
  return name.replace(/(^|_)(\w)/g, (_match, _underscore, letter) => letter.toUpperCase());
}
