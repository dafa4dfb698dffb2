No sé dónde dejé mis llaves .
Se levanta a las seis todas las mañanas .
No lo hemos visto desde el verano pasado .
A mi hermana le gusta el café negro y fuerte .
¿ Podrías prestarme tu paraguas , por favor ?
Lleva lloviendo desde el martes .
No te olvides de lavarte las manos antes de cenar .
Nos dijo que el tren llegaría tarde .
No hay nadie en la cocina .
Tom se rompió la pierna mientras esquiaba en los Alpes .
¿ Cuántos años tiene tu hija menor ?
La casa de mi abuela tiene una pequeña puerta roja .
Lo siento , pero ahora mismo no puedo ayudarte .
Se van a casar el año que viene .
Los nuevos vecinos , que son muy amables , nos invitaron a cenar .
Esa película me hizo llorar .
Si tuviera más dinero , viajaría por todo el mundo .
Deberías beber menos café y dormir más .
Acaba de salir de la oficina .
Cuesta doce euros con cincuenta céntimos .
Nadie me cuenta nunca nada .
¡ Qué día tan bonito !
Echo mucho de menos a mis amigos del colegio .
¿ Compraste las entradas que te pidió Ana ?
Los niños jugaban al fútbol en la calle cuando se hizo de noche .
Se lo di ayer .
Nos quedamos sin leche , así que fui al supermercado .
A esta sopa le falta un poco más de sal , ¿ no ?
Su hermano trabaja de enfermero en un hospital cerca de Granada .
Prefiero quedarme en casa y leer un buen libro .
¿ De quién es esa bicicleta azul ?
Apaga la luz cuando salgas de la habitación .
Me duelen los pies porque hoy he caminado quince kilómetros .
